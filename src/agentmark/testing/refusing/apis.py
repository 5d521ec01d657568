"""What every API module of this package answers."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agentmark.testing.refusing.conversation import Reply, Request, Usage
from agentmark.testing.refusing.profiles import Profile, Refused

Body = Mapping[str, Any]
# An event of a stream: its name, if the API names its events, and its data.
Event = tuple[str | None, object]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that was taken, and what the model said to it. `rng` makes the ids."""

    body: Body
    request: Request
    replies: tuple[Reply, ...]
    usage: Usage
    rng: random.Random


class Api(Protocol):
    """How an API is read and spoken."""

    def read(self, body: Body, path: str) -> Request:
        """The request, as far as it can be read."""

    def fault(self, body: Body, request: Request, profile: Profile) -> Refused | None:
        """What is wrong with a request by this API's own rules, or by what only this API can see of a profile's."""

    def in_own_words(self, refused: Refused) -> Refused:
        """A refusal that any provider may answer with (a wrong key, too many requests), as those of this API say it."""

    def error(self, refused: Refused, profile: Profile) -> object:
        """An error in this API's shape."""

    def prefix(self, body: Body) -> list[object]:
        """What a provider's cache sees of a request, in the order in which it goes into the model."""

    def reply(self, exchange: Exchange) -> object:
        """The body of a response."""

    def events(self, exchange: Exchange) -> Iterator[Event]:
        """The same as a stream."""
