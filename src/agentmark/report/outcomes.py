"""What became of the records, in words."""

from agentmark.report.numbers import count_text
from agentmark.report.parts import VerdictPart

USED = "used"
IMPOSSIBLE = "impossible under this key"

OUTCOME_MEANING = {
    USED: "evidence, for or against",
    IMPOSSIBLE: "no identity leads to this choice under this key: altered, or made by another",
    "weights not logged": "the probabilities are missing, and the scheme needs them",
    "duplicate": "a copy of a record that counts once",
    "conflicting copies": "copies that disagree; none of them counts",
    "unmarked": "the step was taken without the mark, for the reason in its record",
    "not enforced": "the agent did not do what was chosen",
    "other key": "states a key that was not given",
    "other payload length": "states another payload length",
    "not read: work limit": "reading it would have cost more than the work limit",
    "not disclosed": "states the key, and its holder has not disclosed it: it counts against everyone",
    "altered since it was disclosed": "another record of its context was disclosed: it counts against everyone",
    "not proved": "disclosed with a proof that does not hold: it counts against everyone",
}
COUNTED_AGAINST = ("not disclosed", "altered since it was disclosed", "not proved")
# Few enough for one sentence.
REASONS_SHOWN = 3


def set_aside(verdict: VerdictPart) -> str:
    """How many records say nothing here, and why, as a sentence of plain words; empty if there are none."""
    aside = {
        outcome: count for outcome, count in verdict["outcomes"].items() if outcome not in (USED, *COUNTED_AGAINST)
    }
    if not aside:
        return ""
    largest = sorted(aside, key=lambda outcome: -aside[outcome])
    reasons = [f"{aside[outcome]:,} {outcome} ({OUTCOME_MEANING.get(outcome, '-')})" for outcome in largest]
    shown = "; ".join(reasons[:REASONS_SHOWN]) + ("; and others" if len(reasons) > REASONS_SHOWN else "")
    total = sum(aside.values())
    return f"{count_text(total, 'record')} {'was' if total == 1 else 'were'} set aside: {shown}."
