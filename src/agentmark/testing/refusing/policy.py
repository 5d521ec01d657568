"""The model behind the provider: a small policy that reads the conversation and knows what could come next.

For an errand it knows which steps are left; for tools it has never seen it calls each about once and then answers. The
same distribution is sampled for replies and stated when the model is asked about its next step.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import log
from string import ascii_letters, digits
from typing import Any

from agentmark.testing.refusing.conversation import AUTO, Call, Choice, Reply, Request, TokenInfo, Tool, Turn, tokens_of
from agentmark.testing.refusing.errand import LOOKUPS, Order, order_in
from agentmark.testing.refusing.profiles import Profile
from agentmark.testing.refusing.questions import Question, instruction_in

# Tools called together, in alphabetical order; none for a plain answer.
Behavior = tuple[str, ...]
ANSWERING: Behavior = ()
# How options call the plain answer.
_ANSWER_NAMES = ("(answer)", "answer", "Finish")
# A tool by which some agents want to be answered, instead of in plain text (smolagents).
_FINAL_ANSWER = "final_answer"
_PARALLEL_SHARE = 0.2
# The share of a letter's probability that goes to other tokens, and to the letter with a blank before it.
_LEAK, _BLANK = 0.02, 0.1
_NEVER = -20.0
_OPENERS = ("", "All done. ", "Here is what the parcel says. ", "Finished: ")
_ASIDES = ("", "", "Let me do that.", "One moment.", "Next step.")
_THOUGHTS = ("What is still missing?", "Several things can come next.", "Let me go on with the order.")
_NOTES = ("", "please wrap it", "the blue one", "as usual")
_QUERIES = ("{item}", "a {item}", "{item} in stock", "good {item}")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an errand has come, by what the tools returned."""

    order: Order
    searched: frozenset[str]
    priced: frozenset[str]
    added: frozenset[str]
    has_address: bool
    label: str

    @classmethod
    def read(cls, request: Request) -> "Progress | None":
        """What the conversation shows; None if it is about no errand. Transcripts in one message are read as well."""
        said = [turn.text for turn in request.turns if turn.role in ("user", "tool")]
        orders = [order for order in map(order_in, said) if order is not None]
        if not orders:
            return None
        order, text = orders[-1], "\n".join(said)
        found = [part.partition(".")[0] for part in text.split("Found: ")[1:]]
        shipped = text.rpartition("Shipped. ")[2] if "Shipped. " in text else ""
        return cls(
            order=order,
            searched=frozenset([item for item in order.items if any(item in part for part in found)]),
            priced=frozenset([item for item in order.items if re.search(rf"\b{item}: \d+ crowns", text)]),
            added=frozenset([item for item in order.items if f"{item} is in the basket" in text]),
            has_address=f"The parcel goes to {order.city}" in text,
            label=shipped.partition(" crowns.")[0] + " crowns." if shipped else "",
        )

    def left(self, name: str) -> list[str]:
        """The items that a tool has not been used for."""
        used = {"search": self.searched, "price": self.priced, "add": self.added}.get(name, frozenset())
        return [item for item in self.order.items if item not in used]

    def weights(self) -> dict[str, float]:
        """How much each single step has for it; an empty name is the answer."""
        is_ready = not self.left("add") and self.has_address
        eagerness = 0.3 if is_ready else 1.0
        return {
            "search": 0.25 * eagerness if self.left("search") else 0.0,
            "price": 0.2 * eagerness if self.left("price") else 0.0,
            "add": 0.4 if self.left("add") else 0.0,
            "deliver_to": 0.0 if self.has_address else 0.2,
            # Now and then a model is too early, and is told so.
            "ship": 0.0 if self.label else 1.0 if is_ready else 0.02,
            "": 3.0 if self.label else 0.0,
        }


def distribution(request: Request, choice: Choice) -> dict[Behavior, float]:
    """How likely each next behavior is, among those that the request leaves open."""
    progress = Progress.read(request)
    offered = [tool.name for tool in request.tools]
    singles = _generic_weights(request) if progress is None else progress.weights()
    if progress is not None and _FINAL_ANSWER in offered:
        singles |= {_FINAL_ANSWER: singles[""], "": 0.0}
    offered_as = {name if progress is None else known_as(name): name for name in offered}
    weights: dict[Behavior, float] = {(name,): singles.get(name, 0.0) for name in offered_as}
    weights[ANSWERING] = singles[""]
    if progress is not None and request.parallel:
        weights |= _pairs(progress, weights)
    weights = {tuple([offered_as[name] for name in behavior]): weight for behavior, weight in weights.items()}
    open_ = {
        behavior: weight
        for behavior, weight in weights.items()
        if (choice.may_answer if behavior == ANSWERING else choice.names is None or set(behavior) <= set(choice.names))
    }
    total = sum(open_.values())
    if total > 0:
        return {behavior: weight / total for behavior, weight in open_.items() if weight > 0}
    # Nothing that is left open makes sense; what is demanded is done all the same.
    demanded = [behavior for behavior in open_ if behavior != ANSWERING] if choice.is_forced else [ANSWERING]
    return {behavior: 1 / len(demanded) for behavior in demanded or [ANSWERING]}


def known_as(name: str) -> str:
    """The errand's name of a tool: agents that have it from a server write the server's name before it."""
    return name.rpartition("__")[2]


def _pairs(progress: Progress, weights: Mapping[Behavior, float]) -> dict[Behavior, float]:
    """Two steps at once, where neither waits for the other."""
    steps = ["deliver_to"] if weights.get(("deliver_to",)) else []
    for name in ("add", *LOOKUPS):
        if weights.get((name,)):
            steps += [name] * min(2, len(progress.left(name)))
    found: dict[Behavior, float] = {}
    for first, second in combinations(sorted(steps), 2):
        if (first, second) not in found:
            found[first, second] = weights[(first,)] * weights[(second,)]
    total = sum(found.values())
    if not total:
        return {}
    single = sum([weights[(name,)] for name in sorted(set(steps))])
    scale = single * _PARALLEL_SHARE / (1 - _PARALLEL_SHARE) / total
    return {pair: weight * scale for pair, weight in found.items()}


def _generic_weights(request: Request) -> dict[str, float]:
    """For tools that nobody told this model about: each about once, then the answer."""
    called = [call.name for turn in request.turns for call in turn.calls]
    weights = {tool.name: _liking(tool.name) / (1 + 4 * called.count(tool.name)) for tool in request.tools}
    return {**weights, "": 0.1 + 0.5 * len(called)}


def _liking(name: str) -> float:
    """A preference that depends on the name alone, from a half to one and a half."""
    return 0.5 + random.Random(name).random()


def replies(request: Request, question: Question | None, profile: Profile, rng: random.Random) -> list[Reply]:
    """As many replies as the request asks for, each drawn anew. At temperature 0 they differ in their ids alone."""
    count = 1 if profile.ignores_count else request.count
    if profile.ignores_logprobs:
        request = replace(request, top_logprobs=None)
    drawn = [
        _reply(request, question, profile, random.Random(0) if request.temperature == 0 else rng) for _ in range(count)
    ]
    return [replace(reply, calls=tuple([replace(call, id=identifier(rng)) for call in reply.calls])) for reply in drawn]


def _reply(request: Request, question: Question | None, profile: Profile, rng: random.Random) -> Reply:
    thinks = profile.thinks if request.thinking is None else request.thinking
    thinking = rng.choice(_THOUGHTS) if thinks or profile.thinks_aloud else ""
    tokens: list[TokenInfo] | None = None if request.top_logprobs is None else []
    calls: tuple[Call, ...] = ()
    if question is not None:
        text, first = _answer_to(question, request, profile, rng)
    else:
        shape = None if profile.ignores_schema else request.schema
        text, calls = _next_step(request, shape, profile, rng)
        first = None
    if tokens is not None:
        tokens += _token_infos(text, first, request.top_logprobs or 0)
    if profile.thinks_aloud:
        aloud = f"<think>\n{thinking}\n</think>\n\n"
        thinking, text = "", aloud + text
        if tokens is not None:
            tokens = [*_token_infos(aloud, None, request.top_logprobs or 0), *tokens]
    reply = Reply(thinking=thinking, text=text, calls=calls, tokens=None if tokens is None else tuple(tokens))
    return reply if request.max_tokens is None else _cut(reply, request.max_tokens)


def _cut(reply: Reply, limit: int) -> Reply:
    """The reply within a limit, thinking first. A call that does not fit is left out whole, not in the middle."""
    if reply.output_tokens <= limit:
        return reply
    thinking = tokens_of(reply.thinking)[:limit]
    text = tokens_of(reply.text)[: max(0, limit - len(thinking))]
    return Reply(
        thinking="".join(thinking),
        text="".join(text),
        is_cut_short=True,
        tokens=None if reply.tokens is None else reply.tokens[: len(text)],
    )


def _next_step(
    request: Request, schema: Mapping[str, Any] | None, profile: Profile, rng: random.Random
) -> tuple[str, tuple[Call, ...]]:
    """What the agent asked for: the text and the calls of its next step."""
    choice = request.choice
    told = instruction_in(request.turns) if profile.obeys else None
    if told == "":
        choice = Choice(names=())
    elif told in request.allowed:
        choice = Choice(names=(told,), may_answer=False)
    behavior = _drawn(distribution(request, choice), request.temperature, rng)
    progress = Progress.read(request)
    if behavior == ANSWERING:
        if schema is not None:
            return json.dumps(value_for(schema, {}, rng)), ()
        return _final_text(progress, request.turns, rng), ()
    calls: list[Call] = []
    for name in behavior:
        tool = next(tool for tool in request.tools if tool.name == name)
        taken = [value for call in calls for value in call.arguments.values()]
        calls.append(Call("", name, _arguments(name, tool.schema, progress, taken, rng)))
    return rng.choice(_ASIDES), tuple(calls)


def _drawn(weights: Mapping[Behavior, float], temperature: float | None, rng: random.Random) -> Behavior:
    behaviors = sorted(weights)
    if temperature == 0:
        return max(behaviors, key=lambda behavior: weights[behavior])
    power = 1 / (1 if temperature is None else temperature)
    return rng.choices(behaviors, [weights[behavior] ** power for behavior in behaviors])[0]


def _arguments(
    name: str, schema: Mapping[str, Any], progress: Progress | None, taken: Sequence[Any], rng: random.Random
) -> dict[str, Any]:
    name = known_as(name)
    if progress is not None and name in ("search", "price", "add"):
        left = [item for item in progress.left(name) if not any(item in str(value) for value in taken)]
        item = rng.choice(left or list(progress.order.items))
        if name == "search":
            return {"query": rng.choice(_QUERIES).format(item=item)}
        note = rng.choice(_NOTES) if name == "add" else ""
        return {"item": item, "note": note} if note else {"item": item}
    if progress is not None and name == "deliver_to":
        return {"city": progress.order.city}
    if progress is not None and name == "ship":
        return {}
    if progress is not None and name == _FINAL_ANSWER:
        return {"answer": _final_text(progress, (), rng)}
    value = value_for(schema, {}, rng)
    return value if isinstance(value, dict) else {}


def _final_text(progress: Progress | None, turns: Sequence[Turn], rng: random.Random) -> str:
    if progress is None:
        returned = [turn.text for turn in turns if turn.role == "tool"]
        return rng.choice(_OPENERS) + (f"The last result was: {returned[-1]}" if returned else "Hello.")
    if progress.label:
        return rng.choice(_OPENERS) + progress.label
    return "That is not finished yet."


# --- questions about the next step -----------------------------------------------------------------------------------


def stated_weights(request: Request, options: Sequence[str]) -> dict[str, float]:
    """The policy's list over some options, to four places; it sums to one."""
    asked = replace(request, choice=AUTO, tools=tuple([tool for tool in request.tools if tool.name in options]))
    known = {tool.name for tool in asked.tools}
    missing = [name for name in options if name not in known and name not in _ANSWER_NAMES]
    asked = replace(asked, tools=asked.tools + tuple([Tool(name) for name in missing]))
    masses = dict.fromkeys(options, 0.0)
    answer = next((name for name in options if name in _ANSWER_NAMES), None)
    for behavior, mass in distribution(asked, Choice(may_answer=answer is not None)).items():
        for name in behavior:
            masses[name] += mass / len(behavior)
        if behavior == ANSWERING and answer is not None:
            masses[answer] += mass
    rounded = {name: round(mass, 4) for name, mass in masses.items()}
    largest = max(rounded, key=lambda name: rounded[name])
    rounded[largest] = round(rounded[largest] + 1 - sum(rounded.values()), 4)
    return rounded


def _answer_to(
    question: Question, request: Request, profile: Profile, rng: random.Random
) -> tuple[str, list[tuple[str, float]] | None]:
    """What the model says to a question, and its probabilities for the first token where they matter."""
    by_name = stated_weights(request, list(question.options.values()))
    if question.letters:
        masses = {letter: by_name[name] for letter, name in question.options.items()}
        letters = sorted(masses)
        if request.temperature == 0:
            letter = max(letters, key=lambda letter: masses[letter])
        else:
            letter = rng.choices(letters, [masses[letter] for letter in letters])[0]
        return letter, _letter_probabilities(masses)
    if question.with_arguments:
        content: Any = {"action_weights": by_name, "action_args": dict.fromkeys(by_name)}
    elif request.schema is not None and not profile.ignores_schema:
        content = value_for(request.schema, by_name, rng)
    else:
        content = by_name
    is_bare = request.json_object or (request.schema is not None and not profile.ignores_schema)
    text = json.dumps(content)
    return (text if is_bare else f"{rng.choice(_THOUGHTS)} So:\n{text}"), None


def _letter_probabilities(masses: Mapping[str, float]) -> list[tuple[str, float]]:
    found = [("The", _LEAK / 2), ("\n", _LEAK / 2)]
    for letter, mass in masses.items():
        found += [(letter, mass * (1 - _LEAK) * (1 - _BLANK)), (f" {letter}", mass * (1 - _LEAK) * _BLANK)]
    return sorted([(token, share) for token, share in found if share > 0], key=lambda pair: -pair[1])


def _token_infos(text: str, first: Sequence[tuple[str, float]] | None, top: int) -> list[TokenInfo]:
    """The tokens of a text: nearly certain, but for the first where its probabilities are given."""
    infos = []
    for position, token in enumerate(tokens_of(text)):
        if position == 0 and first is not None:
            shares = dict(first)
            ranked = [(name, log(share)) for name, share in first]
            infos.append(TokenInfo(token, log(shares[token]), tuple(ranked[:top])))
        else:
            others = [(f"{token}{letter}", _NEVER) for letter in ascii_letters]
            infos.append(TokenInfo(token, 0.0, tuple([(token, 0.0), *others][:top])))
    return infos


# --- shapes ----------------------------------------------------------------------------------------------------------


def value_for(schema: Mapping[str, Any], numbers: Mapping[str, float], rng: random.Random, name: str = "") -> Any:
    """A value that a schema allows; numbers that have a name here are given by it."""
    if "enum" in schema:
        return rng.choice(list(schema["enum"]))
    kind = schema.get("type", "string")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        members = schema.get("properties", {})
        required = schema.get("required", list(members))
        return {key: value_for(member, numbers, rng, key) for key, member in members.items() if key in required}
    if kind in ("number", "integer"):
        return numbers.get(name, rng.randrange(1, 10))
    if kind == "array":
        return [value_for(schema.get("items", {}), numbers, rng)]
    if kind == "boolean":
        return rng.random() < 0.5
    return None if kind == "null" else rng.choice(("amber", "birch", "cedar", "dune"))


def identifier(rng: random.Random, length: int = 24) -> str:
    """What ids are made of."""
    return "".join(rng.choices(ascii_letters + digits, k=length))
