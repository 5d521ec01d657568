"""How evidence and rank grow, record by record: the points of a report's charts."""

from collections.abc import Sequence

from agentmark.core.evidence import Evidence
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import Equation
from agentmark.core.schemes import SCHEMES
from agentmark.report.numbers import bits_text
from agentmark.report.parts import GrowthPart, RankPart
from agentmark.verify.intake import Intake
from agentmark.verify.verdict import Verdict

# A longer curve is thinned out to about so many points.
MAX_POINTS = 400


def growth_part(verdict: Verdict, intake: Intake, noise_rates: Sequence[float]) -> GrowthPart:
    """Surplus after each record, in the order of the log: of the candidate, or of what the steps could say.

    The candidate was picked by looking at the whole log, so its evidence alone may grow by that choice. Its surplus
    cannot: 2^surplus is one term of the mean of all e-values, weighted by the prices, which is an e-value at every
    record, whichever term is picked afterwards.
    """
    evidence = Evidence(noise_rates)
    possible = 0.0
    totals: list[float] = []
    for step in intake.steps:
        if step.reading is not None:
            possible += step.reading.evidence_bits
            if verdict.candidate is not None:
                evidence.update(step.reading.e_value(verdict.candidate))
        totals.append((possible if verdict.candidate is None else evidence.bits) - verdict.bits_paid)
    return GrowthPart(
        of="steps" if verdict.candidate is None else "candidate",
        points=[(0, bits_text(-verdict.bits_paid)), *[(i + 1, bits_text(totals[i])) for i in thinned(len(totals))]],
    )


def rank_part(intake: Intake) -> RankPart | None:
    """How many payload bits the equations of linear schemes speak of, after each record; None without equations."""
    system = LinearSystem(intake.payload_len)
    equations = 0
    ranks = []
    for step in intake.steps:
        if step.reading is not None and SCHEMES[step.record.scheme].is_linear:
            equations += len(step.reading.rows)
            for row in step.reading.rows if system.rank < intake.payload_len else ():
                system.update(Equation(row, 0))
        ranks.append(system.rank)
    if equations == 0 or intake.payload_len == 0:
        return None
    return RankPart(equations=equations, points=[(0, 0), *[(i + 1, ranks[i]) for i in thinned(len(ranks))]])


def thinned(count: int) -> list[int]:
    """At most about MAX_POINTS positions, evenly spread; the last is always among them."""
    stride = -(-count // MAX_POINTS) or 1
    return [i for i in range(count) if (count - 1 - i) % stride == 0]
