"""Progress as lines on standard error."""

from agentmark.cli.common import show_progress


class ProgressLine:
    """What is said, a line each."""

    def say(self, message: str) -> None:
        show_progress(message)

    def count(self, done: int, total: int | None, what: str) -> None:
        pass
