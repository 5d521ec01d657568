"""How far an audit is, for whoever watches it."""

from typing import Protocol


class Progress(Protocol):
    """Told what is being done, and how much of it is."""

    def say(self, message: str) -> None:
        """Something that takes a while begins."""

    def count(self, done: int, total: int | None, what: str) -> None:
        """So many of these are done: records read, sessions judged. `total` is None while nobody knows it."""

    def bar(self, done: int, total: int, what: str, *, steps: int | None = None) -> None:
        """So much of a whole is done: bytes read, groups judged; `steps` are the records in it so far."""


class Silent:
    """Progress that nobody watches."""

    def say(self, message: str) -> None:
        pass

    def count(self, done: int, total: int | None, what: str) -> None:
        pass

    def bar(self, done: int, total: int, what: str, *, steps: int | None = None) -> None:
        pass
