"""What a log shows of tampering, without its chain: contexts that do not fit, copies, replays, gaps, and steps that
other records have taken out of the count."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from agentmark.core.context import Places
from agentmark.record import StepRecord
from agentmark.text import counted, is_or_are
from agentmark.verify.intake import Intake, Outcome

# Names beyond this many are counted, not listed.
LISTED = 5


def tamper_findings(records: Iterable[StepRecord]) -> list[str]:
    """Sentences for people. None of these stops the mark from being read, which needs the digests alone."""
    log = list(records)
    findings = []
    altered = [record for record in log if record.context_matches() is False]
    if altered:
        findings.append(f"{_places(altered)}: the raw context is not that of the digest")
    moved = _moved(log)
    if moved:
        findings.append(
            f"{_places(moved)}: the digest is not that of the session and step; renumbered, or replayed from elsewhere"
        )
    findings += _copies(log)
    findings += _gaps(log)
    return findings


def erasure_findings(intake: Intake) -> list[str]:
    """Sentences on steps that do not count because of what other records say: anyone who can add lines can do this.

    They need no key: which records count is settled before anything is read from them.
    """
    findings = []
    conflicting = {step.record.context for step in intake.steps if step.outcome is Outcome.CONFLICTING}
    if conflicting:
        findings.append(f"{_steps(len(conflicting))} in copies that disagree: none of them counts")
    withdrawn = _withdrawn(intake)
    if withdrawn:
        findings.append(
            f"{_steps(len(withdrawn))} both as not obeyed and without that, and not counted: a later correction, or "
            "copies that were added to erase them"
        )
    lengths = Counter(step.record.payload_len for step in intake.steps if step.outcome is Outcome.OTHER_LENGTH)
    if lengths:
        commonest = sorted(lengths.items(), key=lambda item: (-item[1], item[0]))[:LISTED]
        stated = ", ".join([f"{count:,} {_state(count)} {counted(length, 'bit')}" for length, count in commonest])
        total = lengths.total()
        findings.append(
            f"{counted(total, 'record')} {_state(total)} another payload length than the "
            f"{counted(intake.payload_len, 'bit')} judged, and {is_or_are(total)} set aside ({stated}{_more(lengths)})"
            "; where the length is known, give it"
        )
    return findings


def _withdrawn(intake: Intake) -> set[bytes]:
    """Contexts of which one record says that the agent did not obey, and another does not say so."""
    counted = [step.record for step in intake.steps if step.outcome not in (Outcome.OTHER_KEY, Outcome.OTHER_LENGTH)]
    disobeyed = {record.context for record in counted if record.enforced is False}
    return {
        record.context
        for record in counted
        if record.context in disobeyed and record.marked and record.enforced is not False
    }


def _steps(count: int) -> str:
    return f"{counted(count, 'step')} {is_or_are(count)} logged"


def _state(count: int) -> str:
    return "states" if count == 1 else "state"


def _moved(log: Sequence[StepRecord]) -> list[StepRecord]:
    """Records that do not fit their place in a log that otherwise binds session and step alone.

    Where most do not fit, contexts may bind further fields: then only those are named whose digest is that of another
    place in this log. Of a session that was renumbered throughout and renamed as well, nothing can be said.
    """
    plain = [record for record in log if record.raw_context is None]
    places_of: dict[str, Places] = {}
    odd = []
    for record in plain:
        here = places_of.get(record.session) or places_of.setdefault(record.session, Places(record.session))
        if here.digest(record.step_index) != record.context:
            odd.append(record)
    if 2 * len(odd) < len(plain):
        return odd
    places = _place_digests(plain) if odd else set()
    return [record for record in odd if record.context in places]


def _place_digests(log: Sequence[StepRecord]) -> set[bytes]:
    """The digests of the first places of every session: twice as many as it has records, so that it stays cheap."""
    counts = Counter(record.session for record in log)
    found: set[bytes] = set()
    for session, count in counts.items():
        found.update(map(Places(session).digest, range(2 * count)))
    return found


def _copies(log: Sequence[StepRecord]) -> list[str]:
    session_of: dict[bytes, str] = {}
    context_of: dict[tuple[str, int, object], bytes] = {}
    # In order, and each once: contexts of several sessions, and places with several contexts.
    shared: dict[bytes, None] = {}
    doubled: dict[tuple[str, int, object], None] = {}
    for record in log:
        context, place = record.context, (record.session, record.step_index, _request(record))
        if session_of.setdefault(context, record.session) != record.session:
            shared[context] = None
        if context_of.setdefault(place, context) != context:
            doubled[place] = None
    findings = []
    if shared:
        copied = counted(len(shared), "context")
        findings.append(f"{copied} {_appear(shared)} under more than one session: records were copied between them")
    if doubled:
        listed = [place for place in context_of if place in doubled][:LISTED]
        places = ", ".join(f"session {session[:8]} step {step}" for session, step, _ in listed)
        steps = counted(len(doubled), "step")
        findings.append(f"{steps} {_appear(doubled)} with different contexts ({places}{_more(doubled)})")
    return findings


def _request(record: StepRecord) -> object:
    """Which request a step was of, where the context says so: a gateway sees several that are at the same step, asked
    at once or again. Only a raw context that is that of the digest is believed."""
    named = None if record.raw_context is None else record.raw_context.get("request")
    return named if isinstance(named, str) and record.context_matches() else None


def _gaps(log: Sequence[StepRecord]) -> list[str]:
    """Steps that are missing inside a session. The end of a session cannot be told without a chain."""
    steps_of: dict[str, set[int]] = defaultdict(set)
    for record in log:
        steps_of[record.session].add(record.step_index)
    missing = {session: max(steps) + 1 - len(steps) for session, steps in steps_of.items()}
    gaps = {session: count for session, count in missing.items() if count}
    if not gaps:
        return []
    total = sum(gaps.values())
    sessions = len(steps_of)
    where = f" in {len(gaps):,} of {sessions:,} sessions" if sessions > 1 else ""
    return [f"{counted(total, 'step')} {is_or_are(total)} missing{where} (the ends not counted)"]


def _appear(items: Collection[object]) -> str:
    return "appears" if len(items) == 1 else "appear"


def _places(records: Sequence[StepRecord]) -> str:
    where = ", ".join([record.where for record in records[:LISTED]])
    return f"{counted(len(records), 'record')} ({where}{_more(records)})"


def _more(items: Collection[object]) -> str:
    return f", and {len(items) - LISTED:,} more" if len(items) > LISTED else ""
