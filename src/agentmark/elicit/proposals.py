"""Proposals: the model's own replies are the list.

The model is asked `count` times, each time exactly as the agent would have asked it once. Replies that do the same are
one group, the counts of the groups are the list, and the agent is handed one reply of the chosen group, drawn
uniformly. A uniform pick among independent samples is a sample: the whole reply is distributed as the unmarked
model's (docs/spec.md, section 8.1). That holds only if `count` does not depend on what the samples say.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentmark.elicit.situation import ANSWER, OTHER, Proposal, ToolCall
from agentmark.errors import SettingError

METHOD = "proposals"
DEFAULT_COUNT = 4
MAX_COUNT = 128
# Between the tools of one reply, and between a tool and the digest of its arguments. Providers allow neither in names.
JOINT = " + "
DIGEST_SIGN = "#"

Granularity = Literal["tool", "call"]
GRANULARITIES: tuple[Granularity, ...] = ("tool", "call")
# A short keyed digest of bytes, as text.
Digest = Callable[[bytes], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """How often the agent's model is asked, and what tells its replies apart.

    `granularity`: by the `tool` they call, or by the whole `call`, arguments included. With `hosted_tools`, requests
    whose tools run at the provider are sampled too: such tools then run once for each sample. With `warm_cache`, the
    first sample is awaited before the others are asked for, so that they find the prompt in the provider's cache; None
    leaves that to the adapter. Samples are asked for at once, from several threads where nothing is awaited; with
    `at_once` false, one after the other.
    """

    count: int = DEFAULT_COUNT
    granularity: Granularity = "tool"
    hosted_tools: bool = False
    warm_cache: bool | None = None
    at_once: bool = True

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 2 <= self.count <= MAX_COUNT:
            raise SettingError("count", f"{self.count!r} is not a number from 2 to {MAX_COUNT}")
        if self.granularity not in GRANULARITIES:
            raise SettingError("granularity", f"{self.granularity!r} is none of {', '.join(GRANULARITIES)}")

    def obstacle(
        self, *, temperature: float | None = None, seed: int | None = None, runs_hosted_tools: bool = False
    ) -> str | None:
        """Why a request is not to be sampled several times, or None."""
        if temperature == 0:
            return "at temperature 0 every sample would be the same"
        if seed is not None:
            return "with a fixed seed every sample would be the same"
        if runs_hosted_tools and not self.hosted_tools:
            return "tools that run at the provider would run once for each sample"
        return None


def grouped(
    proposals: Sequence[Proposal], names: Iterable[str], digest: Digest | None = None
) -> dict[str, list[Proposal]]:
    """Replies by what they do. With a digest, calls of one tool with other arguments are told apart."""
    known = frozenset(names)
    groups: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        groups.setdefault(behavior_of(proposal.calls, known, digest), []).append(proposal)
    return groups


def behavior_of(calls: Sequence[ToolCall], names: frozenset[str], digest: Digest | None = None) -> str:
    """What a reply does, by name: the answer, a tool, or the set of tools that it calls at once.

    A name that was not on offer is the model's own text, and stays out of the log.
    """
    if not calls:
        return ANSWER
    done = {_name_of_call(call, names, digest) for call in calls}
    return JOINT.join(sorted(done))


def _name_of_call(call: ToolCall, names: frozenset[str], digest: Digest | None) -> str:
    name = call.name if call.name in names else OTHER
    if digest is None:
        return name
    return f"{name}{DIGEST_SIGN}{digest(canonical_arguments(call.arguments))}"


def canonical_arguments(arguments: Any) -> bytes:
    """Arguments that are equal as JSON are equal here. Text that is no JSON, as models write too, stands as it is."""
    value = arguments
    if isinstance(arguments, str | bytes) and arguments:
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            text = arguments.encode("utf-8", "replace") if isinstance(arguments, str) else arguments
            return b"text:" + text
    # No arguments at all is what frameworks make of a call with none.
    value = {} if value is None or (isinstance(value, str | bytes) and not value) else value
    try:
        return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), default=str).encode()
    except (ValueError, RecursionError):
        # Nested too deep, or in itself: no JSON that anybody could send.
        return b"text:" + (arguments if isinstance(arguments, bytes) else str(arguments).encode("utf-8", "replace"))


def _plain(value: Any) -> Any:
    """Keys as text, so that they can be sorted."""
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, float) and value.is_integer():
        # 1.0 is 1 as JSON, and is written so by whoever stores a conversation.
        return int(value)
    return value
