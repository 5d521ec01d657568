"""What the tests of every adapter share: a key, an identity, a decider that logs, and the verdict on its log."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Literal

from agentmark import Embedder, SharedKey, StepRecord, Verdict, Verifier, open_log
from agentmark.decide.decider import Decider
from agentmark.elicit.proposals import Proposals
from agentmark.elicit.situation import ANSWER, Elicitor
from agentmark.embed.session import Session
from agentmark.keys.key import Key

ROOT = Path(__file__).parents[2]
KEY = SharedKey(bytes(range(32)))
PAYLOAD = 0x2A


class CountingEmbedder(Embedder):
    """Gives its sessions numbers in place of random nonces, so that a test does the same in every run."""

    def __init__(self, first: str, key: Key = KEY) -> None:
        super().__init__(key, PAYLOAD, payload_len=8, scheme="R")
        self._numbers = count()
        self._first = first

    def session(self, session_id: str | None = None, *, first_step: int = 0) -> Session:
        return super().session(session_id or f"{self._first}-{next(self._numbers)}", first_step=first_step)


def decider(
    log: Path,
    elicitor: Elicitor | Proposals | None = None,
    *,
    session: str = "s",
    fail: Literal["open", "closed"] = "open",
    fallback: Proposals | None = None,
    key: Key = KEY,
) -> Decider:
    """Without a fallback, so that a test of stated lists sees what becomes of them."""
    return Decider(CountingEmbedder(session, key), elicitor, log, fail=fail, fallback=fallback)


def records(log: Path) -> list[StepRecord]:
    return list(open_log(log))


def verdict(log: Path) -> Verdict:
    return Verifier(KEY).verify(records(log))


# A spread list: about 1.8 bits a decision, and every tenth ends the run.
SPREAD = {"search": 4, "add": 3, "price": 2, ANSWER: 1}


class Shop:
    """Tools with a memory: what they return depends on what was called before, so equal results mean equal runs."""

    def __init__(self) -> None:
        self.cart: list[str] = []
        self.searches = 0

    def search(self, query: str) -> str:
        """Search the catalogue."""
        self.searches += 1
        return f"{query}: item {self.searches}"

    def add(self, item: str) -> str:
        """Put an item into the cart."""
        self.cart.append(item)
        return f"{len(self.cart)} in the cart"

    def price(self) -> str:
        """The price of the cart."""
        return f"{10 * len(self.cart)} euros"

    @property
    def tools(self) -> list[Callable[..., str]]:
        return [self.search, self.add, self.price]


def arguments(tool: str, turn: int) -> dict[str, str]:
    """What every model of these tests passes to a tool, so that runs with equal choices are equal."""
    return {"search": {"query": f"tea {turn}"}, "add": {"item": f"tea {turn}"}}.get(tool, {})
