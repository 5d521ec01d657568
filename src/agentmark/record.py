"""The step record: the contract between the embedding and the verifying side (spec, section 8).

JSON without floats, one object a line. It never holds the payload, the key, or coded bits.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from sys import intern
from typing import Any, Self, cast

from agentmark.core.canonical import MAX_SAFE_INTEGER, canonical_bytes, is_unicode
from agentmark.core.context import context_digest
from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution, checked_total
from agentmark.core.errors import AgentMarkError, ContextError, DistributionError, PayloadError
from agentmark.core.payload import MAX_PAYLOAD_LEN, check_payload_len
from agentmark.core.prf import DIGEST_SIZE
from agentmark.core.schemes import SCHEMES
from agentmark.core.strict_json import RepeatedNameError, StrictJsonError, parse_json_object

RECORD_VERSION = 1

_REQUIRED = (
    "agentmark",
    "scheme",
    "key_id",
    "payload_len",
    "session",
    "step",
    "context",
    "weights",
    "choice",
    "marked",
)
_OPTIONAL = ("partial", "reason", "enforced", "raw_context", "meta", "prev")
_FIELDS = frozenset((*_REQUIRED, *_OPTIONAL))
_required_values = itemgetter(*_REQUIRED)
# The members that hold objects.
_OBJECTS = ("weights", "raw_context", "meta")


# How much of a field or a fault a message quotes.
MAX_SAID = 1000


class RecordError(AgentMarkError, ValueError):
    """A step record that is broken. `where` is a line number or a session and step."""

    def __init__(self, where: str, field: str, fault: str) -> None:
        where, field, fault = _sayable(where), _sayable(field), _sayable(fault)
        super().__init__(f"record {where}: {field}: {fault}")
        self.where = where
        self.field = field
        self.fault = fault


def _sayable(text: str) -> str:
    """Text for a message, which may quote a file: not all of a long one, and nothing that cannot be printed at all."""
    if len(text) > MAX_SAID:
        text = f"{text[:MAX_SAID]} ... ({len(text):,} characters)"
    return text if is_unicode(text) else text.encode("utf-8", "backslashreplace").decode("utf-8")


class RecordVersionError(RecordError):
    """A record of a version or scheme that this build does not read."""

    def __init__(self, where: str, field: str, found: object, known: str) -> None:
        super().__init__(where, field, f"found {found!r}, this build reads {known}")
        self.found = found
        self.known = known


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One decision, as logged. An unmarked step says why, and may have no distribution at all."""

    scheme: str
    key_id: str
    payload_len: int
    session: str
    step_index: int
    context: bytes
    distribution: BehaviorDistribution | None
    behavior: str
    marked: bool
    reason: str | None = None
    # What is left of a list that was not logged whole: exact integer weights of some behaviors, perhaps of none.
    partial_weights: Mapping[str, int] | None = None
    # None: nobody has checked. False: the agent did something else; the step then counts as erased.
    enforced: bool | None = None
    raw_context: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None
    # The digest of the session's record before this one, in a log that is chained.
    prev: str | None = None

    @property
    def where(self) -> str:
        """How messages name this record."""
        return f"session {self.session[:8]} step {self.step_index}"

    def with_partial_weights(self, weights: Mapping[str, int]) -> Self:
        """The same record with only a part of its list: the top few, the chosen one, or none."""
        return replace(self, distribution=None, partial_weights=dict(weights))

    def with_enforced(self, enforced: bool) -> Self:
        """The same record, saying whether the agent obeyed."""
        return replace(self, enforced=enforced)

    def context_matches(self) -> bool | None:
        """Whether the digest is that of the raw context; None when no raw context was kept."""
        if self.raw_context is None:
            return None
        return context_digest(self.raw_context) == self.context

    def as_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "agentmark": RECORD_VERSION,
            "scheme": self.scheme,
            "key_id": self.key_id,
            "payload_len": self.payload_len,
            "session": self.session,
            "step": self.step_index,
            "context": self.context.hex(),
            "weights": self._logged_weights(),
            "choice": self.behavior,
            "marked": self.marked,
        }
        optional = {
            "partial": True if self.partial_weights is not None else None,
            "reason": self.reason,
            "enforced": self.enforced,
            "raw_context": self.raw_context,
            "meta": self.meta,
            "prev": self.prev,
        }
        content.update({name: value for name, value in optional.items() if value is not None})
        return content

    def _logged_weights(self) -> dict[str, int] | None:
        if self.distribution is not None:
            return self.distribution.as_weights()
        return dict(self.partial_weights) if self.partial_weights else None

    def to_json(self) -> str:
        """One line of JSON, without its newline."""
        return json.dumps(self.as_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str = "?") -> Self:
        """Parse and validate one line. `where` names it in errors, for instance "log.jsonl:17"."""
        try:
            content = parse_json_object(text, _OBJECTS)
        except RepeatedNameError as error:
            raise RecordError(where, error.name, "appears twice in one object") from None
        except StrictJsonError:
            raise RecordError(where, "line", "is not valid JSON") from None
        return cls.from_dict(content, where=where)

    @classmethod
    def _of_usual(cls, content: object) -> Self | None:
        """A marked step with a whole list, as nearly all are, checked in one go.

        None for any other, and for one in which something is amiss: `from_dict` goes through it field by field.
        """
        if type(content) is not dict:
            return None
        has_more = len(content) > len(_REQUIRED)
        if has_more and (content.get("partial") is not None or not content.keys() <= _FIELDS):
            return None
        try:
            values = _required_values(content)
            version, scheme, key_id, length, session, step, digest, weights, behavior, marked = values
            context = bytes.fromhex(digest)
            if (
                type(version) is not int
                or version != RECORD_VERSION
                or marked is not True
                or type(weights) is not dict
                or type(scheme) is not str
                or scheme not in SCHEMES
                or type(length) is not int
                or not 0 <= length <= MAX_PAYLOAD_LEN
                or type(step) is not int
                or not 0 <= step <= MAX_SAFE_INTEGER
                or len(context) != DIGEST_SIZE
                or context.hex() != digest
                or not (key_id and session and behavior)
                or not is_unicode("".join((key_id, session, behavior)))
            ):
                return None
            # What is the same in record after record is kept once.
            distribution = BehaviorDistribution.from_weights(
                dict(zip(map(intern, weights), weights.values(), strict=True))
            )
            if behavior not in distribution.behaviors:
                return None
            made: Any = _Unfrozen()
            made.scheme = intern(scheme)
            made.key_id = intern(key_id)
            made.session = intern(session)
            made.behavior = intern(behavior)
            made.payload_len = length
            made.step_index = step
            made.context = context
            made.distribution = distribution
            made.marked = True
            made.partial_weights = None
            if has_more:
                made.reason, made.enforced, made.raw_context, made.meta, made.prev = _optional(content)
            else:
                made.reason = made.enforced = made.raw_context = made.meta = made.prev = None
        except (KeyError, TypeError, ValueError):
            return None
        made.__class__ = cls
        return cast("Self", made)

    @classmethod
    def from_dict(cls, content: object, *, where: str = "?") -> Self:
        """Validate a parsed record. Nothing is repaired: the first fault is raised, with its field."""
        usual = cls._of_usual(content)
        if usual is not None:
            return usual
        content = _checked_fields(content, where)
        marked = _boolean(content, "marked", where)
        partial = content.get("partial") is not None and _boolean(content, "partial", where)
        distribution = None if partial else _distribution(content, where)
        behavior = _text(content, "choice", where)
        if distribution is not None and behavior not in distribution.behaviors:
            raise RecordError(where, "choice", f"{behavior!r} is not among the behaviors of weights")
        if marked and distribution is None and not partial:
            raise RecordError(where, "weights", "a marked step needs them, all or (with partial: true) in part")
        reason = _text(content, "reason", where) if content.get("reason") is not None else None
        if not marked and reason is None:
            raise RecordError(where, "reason", "an unmarked step must say why")
        return cls(
            scheme=_scheme(content, where),
            key_id=_text(content, "key_id", where),
            payload_len=_payload_len(content, where),
            session=_text(content, "session", where),
            step_index=_step_index(content, where),
            context=_digest(content, "context", where),
            distribution=distribution,
            behavior=behavior,
            marked=marked,
            reason=reason,
            partial_weights=_partial_weights(content, where) if partial else None,
            enforced=_boolean(content, "enforced", where) if content.get("enforced") is not None else None,
            raw_context=_object(content, "raw_context", where),
            meta=_object(content, "meta", where),
            prev=_digest(content, "prev", where).hex() if content.get("prev") is not None else None,
        )


class _Unfrozen:
    """A record while it is made: the same slots, free to be set. A frozen class sets each of its own by a call, which
    for all of them takes longer than to check what goes into them."""

    __slots__ = StepRecord.__slots__


def _optional(content: dict[str, Any]) -> tuple[Any, ...]:
    """What a marked step may say beside what it must: reason, enforced, raw context, meta, prev. A RecordError, which
    is a ValueError, if one of them cannot be."""
    where = ""
    return (
        _text(content, "reason", where) if content.get("reason") is not None else None,
        _boolean(content, "enforced", where) if content.get("enforced") is not None else None,
        _object(content, "raw_context", where),
        _object(content, "meta", where),
        _digest(content, "prev", where).hex() if content.get("prev") is not None else None,
    )


def _checked_fields(content: object, where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise RecordError(where, "record", "is not a JSON object")
    if "agentmark" not in content:
        raise RecordError(where, "agentmark", "is missing: not an AgentMark step record")
    if type(content["agentmark"]) is not int or content["agentmark"] != RECORD_VERSION:
        raise RecordVersionError(where, "agentmark", content["agentmark"], f"version {RECORD_VERSION}")
    for name in _REQUIRED:
        if name not in content:
            raise RecordError(where, name, "is missing")
    for name in content:
        if name not in _FIELDS:
            raise RecordError(where, str(name), "is not a field of version 1; free data goes under meta")
    return content


def _text(content: dict[str, Any], name: str, where: str) -> str:
    value = content[name]
    if not isinstance(value, str) or not value or not is_unicode(value):
        raise RecordError(where, name, f"{value!r} is not text")
    return value


def _boolean(content: dict[str, Any], name: str, where: str) -> bool:
    value = content[name]
    if not isinstance(value, bool):
        raise RecordError(where, name, f"{value!r} is neither true nor false")
    return value


def _scheme(content: dict[str, Any], where: str) -> str:
    scheme = content["scheme"]
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise RecordVersionError(
            where, "scheme", scheme, f"schemes {' and '.join(SCHEMES)} of version {RECORD_VERSION}"
        )
    return scheme


def _payload_len(content: dict[str, Any], where: str) -> int:
    try:
        return check_payload_len(content["payload_len"])
    except PayloadError as error:
        raise RecordError(where, "payload_len", error.fault) from None


def _step_index(content: dict[str, Any], where: str) -> int:
    value = content["step"]
    if type(value) is not int or not 0 <= value <= MAX_SAFE_INTEGER:
        raise RecordError(where, "step", f"{value!r} is not a step index")
    return value


def _digest(content: dict[str, Any], name: str, where: str) -> bytes:
    text = _text(content, name, where)
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    # bytes.fromhex alone would also take spaces and capitals, and two spellings of one context are two contexts.
    if len(digest) != DIGEST_SIZE or digest.hex() != text:
        raise RecordError(where, name, f"is not a digest of {2 * DIGEST_SIZE} lower-case hexadecimal digits")
    return digest


def _distribution(content: dict[str, Any], where: str) -> BehaviorDistribution | None:
    weights = content["weights"]
    if weights is None:
        return None
    if not isinstance(weights, dict):
        raise RecordError(where, "weights", "is neither an object of integers nor null")
    try:
        return BehaviorDistribution.from_weights(weights)
    except DistributionError as error:
        raise _weights_error(error, where) from None


def _partial_weights(content: dict[str, Any], where: str) -> dict[str, int]:
    weights = content["weights"]
    if weights is None:
        return {}
    if not isinstance(weights, dict):
        raise RecordError(where, "weights", "is neither an object of integers nor null")
    try:
        total = checked_total(weights)
    except DistributionError as error:
        raise _weights_error(error, where) from None
    if total > TOTAL_WEIGHT:
        raise RecordError(where, "weights", f"sum to {total}, more than 2^32 = {TOTAL_WEIGHT}")
    return weights


def _weights_error(error: DistributionError, where: str) -> RecordError:
    """Faults of names are faults of the member that holds them."""
    return RecordError(where, error.field if error.field.startswith("weights") else "weights", error.fault)


def _object(content: dict[str, Any], name: str, where: str) -> dict[str, Any] | None:
    value = content.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise RecordError(where, name, "is not an object")
    try:
        canonical_bytes(value)
    except ContextError as error:
        raise RecordError(where, name + error.field.removeprefix("$"), error.fault) from None
    return value
