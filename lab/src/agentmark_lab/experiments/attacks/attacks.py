"""Every attack that a verifier must survive, carried out on real logs and judged by the real verifier."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark_lab.experiments.attacks.attack_scene import PAYLOAD_LEN, STEPS, Job, Outcome
from agentmark_lab.experiments.attacks.forgeries import (
    BLIND_ORACLE,
    FORGED_SIZE,
    FORGERIES,
    FORGERY,
    MANY_IDENTITIES,
    MANY_KEYS,
    ORACLE,
)
from agentmark_lab.experiments.attacks.log_attacks import ATTACKS, NAMED, NOTHING, treat
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import exact_interval

NAME = "attacks"
TITLE = "Attacks on a log, one by one"

# An attack that should change nothing may still leave a log in ten with too little evidence.
ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each attack is made, forged logs tried, keys tried, and forgeries through the oracle of each scheme."""

    repeats: int
    forged_logs: int
    keys: int
    oracle: dict[str, int]


FULL = Effort(repeats=30, forged_logs=1000, keys=300, oracle={"F": 20, "R": 10})
QUICK = Effort(repeats=1, forged_logs=10, keys=10, oracle={"F": 1})


def run(options: Options, progress: Progress) -> Findings:
    effort = QUICK if options.quick else FULL
    jobs = []
    for scheme in ("F", "R"):
        if scheme in effort.oracle:
            jobs.append(Job(ORACLE, scheme, effort.oracle[scheme], options.seed))
        jobs += [Job(attack.name, scheme, effort.repeats, options.seed) for attack in ATTACKS]
        jobs += [Job(FORGERY, scheme, effort.forged_logs // (5 if scheme == "R" else 1), options.seed)]
    jobs += [Job(kind, "F", effort.keys, options.seed) for kind in (MANY_KEYS, MANY_IDENTITIES, BLIND_ORACLE)]
    outcomes = map_chunks(carry_out, jobs, workers=options.workers, progress=progress, label="attacks")
    return _findings(dict(zip([(job.kind, job.scheme) for job in jobs], outcomes, strict=True)))


def carry_out(job: Job) -> Outcome:
    rng = generator(job.seed, NAME, job.kind, job.scheme)
    return FORGERIES.get(job.kind, treat)(job, rng)


# The report ----------------------------------------------------------------------------------------------------------


def _findings(outcomes: dict[tuple[str, str], Outcome]) -> Findings:
    rows: list[list[Cell]] = []
    surprises = []
    wrong = 0
    for attack in ATTACKS:
        for scheme in ("F", "R"):
            outcome = outcomes[attack.name, scheme]
            wanted = attack.outcome_f if scheme == "F" else attack.outcome_r
            wrong += outcome.wrong
            if (wanted == NAMED and outcome.named < ENOUGH * outcome.trials) or (wanted == NOTHING and outcome.named):
                surprises.append(f"{attack.name} ({scheme})")
            rows.append(
                [
                    attack.name,
                    attack.needs,
                    scheme,
                    _named(outcome),
                    f"{outcome.before_bits:.0f}",
                    f"{outcome.after_bits:.0f}" if abs(outcome.after_bits) < 1e6 else "ruled out",
                    "; ".join(outcome.reported) or "no",
                ]
            )
    claims = [
        Claim(
            f"Each of {len(ATTACKS)} treatments of a log ends as it should under both schemes: the identity is named "
            f"in at least nine of ten logs, or in none, as the table says ({outcomes[ATTACKS[0].name, 'F'].trials} "
            f"logs each); exceptions: {', '.join(surprises) or 'none'}.",
            not surprises,
        ),
        Claim(
            f"No attack makes the verifier name an identity that did not make the log's steps: {wrong} cases.",
            not wrong,
        ),
        *[_never_claim(kind, scheme, outcomes) for kind, scheme in NEVER],
        *[_oracle_claim(scheme, outcomes[ORACLE, scheme]) for scheme in ("F", "R") if (ORACLE, scheme) in outcomes],
    ]
    counted: list[list[Cell]] = []
    for kind, scheme in NEVER:
        outcome = outcomes[kind, scheme]
        upper = exact_interval(outcome.named, outcome.trials).high
        best = f"{outcome.after_bits:.1f}" if outcome.after_bits else ""
        counted.append(
            [kind, NEEDS[kind], scheme, f"{outcome.named} of {outcome.trials} (below {upper:.1e})", best, ANSWERS[kind]]
        )
    for scheme in [scheme for scheme in ("F", "R") if (ORACLE, scheme) in outcomes]:
        outcome = outcomes[ORACLE, scheme]
        shown = f"{outcome.named} of {outcome.trials} forged; {_spread(outcome.queries)} questions"
        counted.append([ORACLE, NEEDS[ORACLE], scheme, shown, "", ANSWERS[ORACLE]])
    note = (
        f"ALFWorld-like logs of {STEPS} steps, {PAYLOAD_LEN}-bit identities, open decoding at 1e-6. In brackets exact "
        "95 % intervals of the share named. Evidence: mean bits for the best candidate, before and after. Reported: "
        "what the verdict says of it, in any of the logs. A "
        "log that was cut at its end, or put in another order, cannot be told from a whole one without a chain or "
        "signature over it. Genuine records are evidence wherever they are shown: in another log they still name "
        "their own agent."
    )
    tables = [
        Table(
            "What becomes of a log",
            ["attack", "what it takes", "scheme", "outcome", "evidence before", "after", "reported"],
            rows,
            note,
        ),
        Table(
            "Forgery, tries and questions",
            ["attack", "what it takes", "scheme", "outcome", "best evidence (bits)", "what to do about it"],
            counted,
            "Exact 95 % limits. Forgers put genuine lists and choices under fresh contexts, and the identity is "
            f"claimed, so that no tries are paid for. Through the oracle, records with {FORGED_SIZE} equal behaviors "
            "are guessed.",
        ),
    ]
    data = {
        "attacks": [
            {
                "attack": kind,
                "scheme": scheme,
                "trials": outcome.trials,
                "named": outcome.named,
                "wrong": outcome.wrong,
                "before_bits": outcome.before_bits,
                "after_bits": outcome.after_bits if abs(outcome.after_bits) < 1e6 else None,
                "reported": list(outcome.reported),
                "queries": list(outcome.queries),
                "forged": list(outcome.forged),
            }
            for (kind, scheme), outcome in outcomes.items()
        ]
    }
    return Findings(claims, tables, data)


NEVER = ((FORGERY, "F"), (FORGERY, "R"), (MANY_KEYS, "F"), (MANY_IDENTITIES, "F"), (BLIND_ORACLE, "F"))
NEEDS = {
    FORGERY: "1,000 genuine records, no key",
    MANY_KEYS: "many keys",
    MANY_IDENTITIES: "a registry of 1,000",
    BLIND_ORACLE: "a verifier that answers",
    ORACLE: "one genuine log, a verifier that answers",
}
ANSWERS = {
    FORGERY: "nothing: fresh contexts have fresh draws",
    MANY_KEYS: "divide the threshold by the keys tried",
    MANY_IDENTITIES: "the verdict pays for the tries itself",
    BLIND_ORACLE: "limit questions: one in a million is lucky",
    ORACLE: "authenticate, limit and log those who ask (spec, section 10)",
}


def _named(outcome: Outcome) -> str:
    interval = exact_interval(outcome.named, outcome.trials)
    return f"{outcome.named} of {outcome.trials} named ({interval.low:.2f} to {interval.high:.2f})"


def _never_claim(kind: str, scheme: str, outcomes: dict[tuple[str, str], Outcome]) -> Claim:
    outcome = outcomes[kind, scheme]
    upper = exact_interval(outcome.named, outcome.trials).high
    return Claim(
        f"{kind.capitalize()} ({scheme}): {outcome.named} of {outcome.trials:,} accepted (exact 95 % limit "
        f"{upper:.1e}).",
        outcome.named == 0,
    )


def _oracle_claim(scheme: str, outcome: Outcome) -> Claim:
    return Claim(
        f"A verifier that answers anyone can be made to help: with one genuine log of {scheme}, {outcome.named} of "
        f"{outcome.trials} attempts end in an accepted log without a genuine record, after {_spread(outcome.queries)} "
        "questions answered yes or no. Those who ask must be known, limited and logged.",
        outcome.named > 0,
    )


def _spread(counts: Sequence[int]) -> str:
    ordered = sorted(counts)
    return f"{ordered[0]} to {ordered[-1]} (median {ordered[len(ordered) // 2]})" if ordered else "no"
