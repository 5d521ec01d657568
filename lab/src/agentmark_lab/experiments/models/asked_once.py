"""What a model says in a situation, asked once: the list that it states, and a pool of replies in which it names what
it does next, without having been asked for a list. Both are kept by what was asked, for good."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from agentmark.elicit.situation import Candidate, Elicitation, Message, Proposal, Situation, ToolCall
from agentmark_lab.envs.base import Episode
from agentmark_lab.envs.toolbench import FINISH
from agentmark_lab.experiments.models.reply_pools import Pool
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.files import made_once
from agentmark_lab.kit.model_agent import Effort, ElicitedLists, InFixedOrder, candidates_of
from agentmark_lab.kit.models import ModelSpec
from agentmark_lab.kit.options import Progress

# A reply is a name; the longest of ToolBench take some twenty tokens.
MAX_REPLY_TOKENS = 24
# What is shown of a description, and of a reply to a call.
MAX_DESCRIPTION, MAX_SEEN = 100, 60
_QUESTION = "Reply with the exact name of the option that you take next, and nothing else."
# What models write around a name.
_AROUND = " \t\n`\"'.:*_-"

# A step and what came of it.
Step = tuple[str, str]
# How often it is told how far the asking is: a model on a busy machine takes half a minute for a list.
TOLD_EVERY_S = 60.0


@dataclass(slots=True)
class AskedOnce:
    """One model, in situations of one task. `run` tells apart what it says when it is asked anew, in other orders."""

    model: ModelSpec
    folder: Path
    seed: int
    pool_size: int
    run: int = 0
    effort_of_lists: Effort = field(default_factory=Effort)
    effort_of_replies: Effort = field(default_factory=Effort)

    def list_in(self, situation: Situation) -> Elicitation:
        """The list, by full names where the model is a local one; in an order that situation and run decide."""
        opened = InFixedOrder(partial(self.model.open_elicitor, how="names"), f"{self.seed} list {self.run}")
        return ElicitedLists(opened, self.folder, self.run, self.effort_of_lists).elicit(situation)

    def pool_in(self, situation: Situation) -> Pool:
        """Replies at temperature 1. One that names no option calls nothing."""
        asked = request(situation, self.seed)
        place = self.folder / "replies" / f"{_digest(asked, self.pool_size)}.json"
        self.effort_of_replies.calls += self.pool_size
        self.effort_of_replies.cached += self.pool_size * place.exists()
        kept = made_once(place, partial(self._sampled, asked))
        self.effort_of_replies.seconds += kept["seconds"]
        self.effort_of_replies.input_tokens += kept["input_tokens"]
        self.effort_of_replies.output_tokens += kept["output_tokens"]
        named = [name_in(text, situation.names) for text in kept["replies"]]
        self.effort_of_replies.unusable += named.count(None)
        proposals = [
            Proposal(calls=() if name is None else (ToolCall(name, "{}"),), reply=number)
            for number, name in enumerate(named)
        ]
        return Pool(place.stem, frozenset(situation.names), tuple(proposals))

    def _sampled(self, asked: Sequence[Message]) -> dict[str, Any]:
        """A provider that fails ends the run, which can be taken up again: a pool is kept whole, or not at all."""
        start = perf_counter()
        draws = generator(self.seed, "replies", json.dumps(asked))
        replies, read, written = [], 0, 0
        for _ in range(self.pool_size):
            reply = self.model.sampled(asked, seed=draws.getrandbits(31), max_tokens=MAX_REPLY_TOKENS)
            replies.append(reply.text)
            read += reply.input_tokens or 0
            written += reply.output_tokens or 0
        seconds = perf_counter() - start
        return {"replies": replies, "input_tokens": read, "output_tokens": written, "seconds": seconds}


@contextmanager
def told_of(folder: Path, progress: Progress, label: str, *, every_s: float = TOLD_EVERY_S) -> Iterator[None]:
    """Within, it is told now and then what is kept in this folder. Processes that ask tell nothing themselves; what
    they have kept is what a run that is interrupted goes on from."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(every_s):
            lists, pools = len([*folder.glob("*.json")]), len([*folder.glob("replies/*.json")])
            progress(f"{label}: going on; the model has stated {lists} lists and given {pools} pools of replies")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def _digest(asked: Sequence[Message], pool_size: int) -> str:
    content = json.dumps([pool_size, MAX_REPLY_TOKENS, list(asked)], sort_keys=True, ensure_ascii=False)
    return sha256(content.encode("utf-8", "replace")).hexdigest()[:32]


def request(situation: Situation, seed: int) -> list[Message]:
    """What the plain agent sends. The order of its options is one that the seed decides, like that of an agent's tools:
    the same in every situation."""
    shown = sorted(situation.candidates, key=lambda one: sha256(f"{seed} {one.name}".encode()).digest())
    lines = "\n".join([f"- {one.name}: {one.description}" if one.description else f"- {one.name}" for one in shown])
    *before, latest = situation.messages
    return [*before, {"role": "user", "content": f"{latest['content']}\n\nOptions:\n{lines}\n\n{_QUESTION}"}]


def name_in(reply: str, names: Sequence[str]) -> str | None:
    """The one option that a reply names: as a whole, in whatever case, or somewhere in it."""
    words = reply.strip(_AROUND)
    found = [name for name in names if name.casefold() == words.casefold()] or [name for name in names if name in words]
    # A name that is part of another that stands there was not meant.
    found = [name for name in found if not any(name != other and name in other for other in found)]
    return found[0] if len(found) == 1 else None


# What an agent is told -----------------------------------------------------------------------------------------------

_CALLS = (
    "You are an agent. Work on the user's task one step at a time. Call every tool that the task needs once; then "
    "Finish."
)
_COMMANDS = "You are an agent in a house. To bring a thing to a place, go to the place, then move the thing there."


def told_of_calls(episode: Episode, steps: Sequence[Step]) -> Situation:
    """The goal, every call with its reply, and of each tool whether it was called. A call that is made again says the
    same again, and is told once; calls are told in the order of the tools. So it counts what was called, and not when:
    a query of n tools has 2^n situations."""
    replies = dict(steps)
    options = [_tool(one, called=one.name in replies) for one in candidates_of(episode)]
    lines = [
        f"{one.name} was called, and replied: {replies[one.name][:MAX_SEEN]}" for one in options if one.name in replies
    ]
    return _situation(_CALLS, "\n\n".join([episode.goal, *(["\n".join(lines)] if lines else [])]), options)


def _tool(one: Candidate, *, called: bool) -> Candidate:
    if one.name == FINISH:
        return Candidate(FINISH, "nothing is left to call: answer the user.")
    return Candidate(
        one.name, "(called already)" if called else f"(not called yet) {one.description[:MAX_DESCRIPTION]}"
    )


def told_of_latest(episode: Episode, steps: Sequence[Step]) -> Situation:
    """The goal, and the latest step with what came of it."""
    lines = [f"You did: {behavior}\n{seen}" for behavior, seen in steps[-1:]] or [episode.observation]
    return _situation(_COMMANDS, "\n\n".join([episode.goal, *lines]), candidates_of(episode))


def _situation(system: str, said: str, options: Sequence[Candidate]) -> Situation:
    return Situation.of(options, [{"role": "system", "content": system}, {"role": "user", "content": said}])
