"""What is claimed of the tests of utility, over sets of trials that are judged alone: it holds if every set says so."""

from collections.abc import Sequence

from agentmark_lab.kit.equivalence import points, span
from agentmark_lab.kit.experiment import Claim
from agentmark_lab.kit.utility_tests import CUT, Judged, steps_text


def mark_claims(judged: Sequence[Judged], where: str, reference: str) -> list[Claim]:
    """Of a mark, by every set: as successful and as long as the reference, and no task is seen to change."""
    policy, level, pairs = judged[0].policy, judged[0].level, _pairs(judged)
    p_values = by_set([f"{one.p_value:.2g}" for one in judged])
    return [
        Claim(
            f"{where}: {policy} succeeds as often as {reference} within {100 * level.success.margin:g} points (TOST): "
            f"{_successes(judged)} points, {pairs}.",
            all(one.same_success for one in judged),
            aim=True,
        ),
        Claim(
            f"{where}: {policy} takes as many steps as {reference} within {level.steps.margin:g} (TOST): "
            f"{_lengths(judged)} steps, {pairs}.",
            all(one.same_steps for one in judged),
            aim=True,
        ),
        Claim(
            f"{where}: no task is seen to change under {policy}, neither in success nor in length: p = {p_values} "
            f"(a difference is seen below {CUT:g}).",
            not any(one.is_seen for one in judged),
        ),
    ]


def control_claims(judged: Sequence[Judged], where: str, *, aim: bool) -> list[Claim]:
    """That the tests can fail: of the same trials, for what does bias the list, in every set. That equivalence is not
    shown is less than a difference that is seen, and claimed apart; `aim`: the former is an aim too."""
    policy, p_values = judged[0].policy, by_set([f"{one.p_value:.2g}" for one in judged])
    return [
        Claim(
            f"{where}: {policy} does not pass the same tests ({_reasons(judged)}): {_successes(judged)} points, "
            f"{_lengths(judged)} steps, {_pairs(judged)}.",
            not any(one.passes for one in judged),
            aim=aim,
        ),
        Claim(
            f"{where}: that {policy} changes what the agent does is seen: p = {p_values} (seen below {CUT:g}).",
            all(one.is_seen for one in judged),
            aim=True,
        ),
    ]


def by_set(texts: Sequence[str]) -> str:
    """What each set of trials gave."""
    return texts[0] if len({*texts}) == 1 else " and ".join(texts)


def _successes(judged: Sequence[Judged]) -> str:
    return by_set([f"{points(one.success.difference)} (90 % {span(one.success.tost_interval)})" for one in judged])


def _lengths(judged: Sequence[Judged]) -> str:
    return by_set([steps_text(one, "90 % ") for one in judged])


def _reasons(judged: Sequence[Judged]) -> str:
    return "; in the second set ".join(dict.fromkeys([_failed(one) for one in judged]))


def _failed(one: Judged) -> str:
    names = {
        "success not shown to be the same": not one.same_success,
        "length not shown to be the same": not one.same_steps,
        "a change is seen": one.is_seen,
    }
    return ", ".join([name for name, fails in names.items() if fails]) or "it passes"


def _pairs(judged: Sequence[Judged]) -> str:
    pairs = judged[0].success.episodes
    return f"{pairs:,} pairs of episodes" + (" in each of two sets" if len(judged) == 2 else "")
