"""How many questions a forger needs who has no key and may ask a verifier about logs of his own, in each of its views.

Whoever asks states a claim and hands in a log. Somebody who is answered like the key holder sees the verdict's sentence
or its evidence; a stranger sees yes or no, in a view of which every letter may be looked at.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from random import Random

from agentmark.core.distribution import BehaviorDistribution
from agentmark.embed.embedder import Embedder
from agentmark.record import StepRecord
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier
from agentmark_lab.experiments.attacks.forger import Forger, Question
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import exact_interval

NAME = "forgers"
TITLE = "How many questions a forger needs"

PAYLOAD_LEN = 16
THRESHOLDS = (1e-6, 1e-9)
# The genuine log that some forgers have: the list of the paper's example (App. C), again and again.
TICKET_LIST = BehaviorDistribution.quantise(
    {"Search": 0.40, "Book": 0.25, "Pay": 0.15, "Check-in": 0.12, "Modify": 0.08}
)
GENUINE_STEPS = 80
# Nobody asks more often.
MOST_QUESTIONS = 150
# Steps forged beyond those that would just do: the evidence pays a little for the noise that it allows for.
SPARE_STEPS = 4
# Forgers without any "yes" are counted where luck can be seen: a bound of one in eight.
LUCKY_THRESHOLD, LUCKY_QUESTIONS, LUCKY_STEPS = 1 / 64, 8, 7

SENTENCE, BITS, YES_NO, VIEW = "the key holder's sentence", "the evidence in bits", "yes or no", "the stranger's view"
NO_LOG, LOG_F, LOG_R = "none", "F", "R"


@dataclass(frozen=True, slots=True)
class Effort:
    """How many forgers in each row, and how many who ask without any answer that helps."""

    forgers: int
    lucky: int


FULL = Effort(forgers=100, lucky=2000)
QUICK = Effort(forgers=3, lucky=50)
CHUNK_FORGERS = 25


class Answerer:
    """A verifier with a secret key that answers questions about one claim."""

    def __init__(self, rng: Random, threshold: float) -> None:
        self.key = random_key(rng)
        self.claim = rng.getrandbits(PAYLOAD_LEN)
        self._verifier = Verifier(self.key, payload_len=PAYLOAD_LEN, threshold=threshold)
        # How often each view was shown of a log that is not accepted.
        self.refusals: Counter[str] = Counter()

    def verdict(self, question: Question) -> Verdict:
        return self._verifier.verify(question, claim=self.claim)

    def genuine_log(self, rng: Random, scheme: str) -> list[StepRecord]:
        """One that is accepted, as almost every one of this length is."""
        embedder = Embedder(self.key, self.claim, payload_len=PAYLOAD_LEN, scheme=scheme)
        while True:
            session = embedder.session(rng.randbytes(16).hex())
            log = [session.choose(TICKET_LIST.as_weights()).record for _ in range(GENUINE_STEPS)]
            if self.yes_or_no(log):
                return log

    def bits_in_the_sentence(self, question: Question) -> float | None:
        """None: accepted."""
        verdict = self.verdict(question)
        if verdict.accepted:
            return None
        said = re.search(r"carr(?:y|ies) (-?[\d.]+) bits", verdict.sentence)
        assert said is not None
        return float(said[1])

    def bits(self, question: Question) -> float | None:
        verdict = self.verdict(question)
        return None if verdict.accepted else verdict.evidence_bits

    def view(self, question: Question) -> str | None:
        """All that a stranger sees, as text. None: accepted."""
        view = self.verdict(question).for_stranger()
        if view.accepted:
            return None
        text = json.dumps(view.as_dict())
        self.refusals[text] += 1
        return text

    def yes_or_no(self, question: Question) -> bool:
        return self.view(question) is None


@dataclass(frozen=True, slots=True)
class Row:
    """What forgers are told, what genuine log they have, and what it takes to be accepted."""

    told: str
    genuine: str
    threshold: float


ROWS = tuple(
    [
        Row(told, genuine, threshold)
        for threshold in THRESHOLDS
        for told, genuine in ((SENTENCE, NO_LOG), (BITS, NO_LOG), (YES_NO, LOG_F), (YES_NO, LOG_R), (VIEW, NO_LOG))
    ]
)
NUMBERS: dict[str, Callable[[Answerer, Question], float | None]] = {
    SENTENCE: Answerer.bits_in_the_sentence,
    BITS: Answerer.bits,
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some forgers of a row; without one, of those who get no answer that helps."""

    row: Row | None
    forgers: int
    seed: int
    number: int


# What one forger came to: the questions asked, or None if nothing without a genuine record was accepted.
Outcome = int | None


@dataclass(frozen=True, slots=True)
class Done:
    """What forgers came to, and which views they were shown of logs that are not accepted, each with how often."""

    threshold: float
    outcomes: list[Outcome]
    refusals: Counter[str]


def run(options: Options, progress: Progress) -> Findings:
    effort = QUICK if options.quick else FULL
    chunks = [chunk for row in ROWS for chunk in _chunks(row, effort.forgers, options.seed)]
    chunks += _chunks(None, effort.lucky, options.seed)
    done = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="forgers")
    outcomes: dict[Row | None, list[Outcome]] = {}
    for chunk, of_chunk in zip(chunks, done, strict=True):
        outcomes.setdefault(chunk.row, []).extend(of_chunk.outcomes)
    return _findings(outcomes, refusals_of(done))


def refusals_of(done: Iterable[Done]) -> dict[float, Counter[str]]:
    """The views of logs that are not accepted, by threshold, which whoever asks knows."""
    refusals: dict[float, Counter[str]] = defaultdict(Counter)
    for part in done:
        refusals[part.threshold].update(part.refusals)
    return dict(refusals)


def _chunks(row: Row | None, forgers: int, seed: int) -> list[Chunk]:
    starts = range(0, forgers, CHUNK_FORGERS)
    return [Chunk(row, min(CHUNK_FORGERS, forgers - start), seed, number) for number, start in enumerate(starts)]


def run_chunk(chunk: Chunk) -> Done:
    row = chunk.row
    where = ("no answers",) if row is None else (row.told, row.genuine, row.threshold)
    rng = generator(chunk.seed, NAME, *where, chunk.number)
    done = Done(LUCKY_THRESHOLD if row is None else row.threshold, [], Counter())
    for _ in range(chunk.forgers):
        # Each before a verifier with a new key.
        answerer = Answerer(rng, done.threshold)
        done.outcomes.append(guess_blindly(answerer, rng) if row is None else forge(row, answerer, rng))
        done.refusals.update(answerer.refusals)
    return done


def forge(row: Row, answerer: Answerer, rng: Random) -> Outcome:
    forger = Forger(answerer.key.id, PAYLOAD_LEN, rng)
    genuine: list[StepRecord] = []
    if row.told == YES_NO:
        genuine = answerer.genuine_log(rng, row.genuine)
        steps = ceil(-log2(row.threshold)) + SPARE_STEPS
        forger.by_yes_and_no(answerer.yes_or_no, genuine=genuine, steps=steps, limit=MOST_QUESTIONS)
    elif row.told == VIEW:
        forger.by_views(answerer.view, limit=MOST_QUESTIONS)
    else:
        told = NUMBERS[row.told]
        forger.by_numbers(lambda question: told(answerer, question), limit=MOST_QUESTIONS)
    used = {record.context for record in forger.log} & {record.context for record in genuine}
    return forger.asked if answerer.verdict(forger.log).accepted and not used else None


def guess_blindly(answerer: Answerer, rng: Random) -> Outcome:
    """Questions that are written down beforehand: through the choices of the same few steps. Who adapts has nothing to
    adapt to: until the first "yes" all answers are the same."""
    forger = Forger(answerer.key.id, PAYLOAD_LEN, rng)
    steps = [forger.both_sides() for _ in range(LUCKY_STEPS)]
    for number in range(LUCKY_QUESTIONS):
        if answerer.yes_or_no([sides[number >> i & 1] for i, sides in enumerate(steps)]):
            return number + 1
    return None


# The report ----------------------------------------------------------------------------------------------------------


def _findings(outcomes: dict[Row | None, list[Outcome]], refusals: Mapping[float, Counter[str]]) -> Findings:
    rows = {row: found for row, found in outcomes.items() if row is not None}
    taught = {row: found for row, found in rows.items() if row.told != VIEW}
    untaught = {row: found for row, found in rows.items() if row.told == VIEW}
    claims = [_taught_claim(row, found) for row, found in taught.items() if row.threshold == THRESHOLDS[0]]
    claims += [_untaught_claim(untaught), _refusals_claim(refusals), _lucky_claim(outcomes[None])]
    tables = [_taught_table(taught), _untaught_table(untaught, outcomes[None])]
    data = {
        "forgers": [
            {"told": row.told, "genuine": row.genuine, "threshold": row.threshold, "questions": found}
            for row, found in rows.items()
        ],
        "without_answers": outcomes[None],
        "refusals": [
            {"threshold": threshold, "views": sum(views.values()), "different": len(views), "first": min(views)}
            for threshold, views in refusals.items()
            if views
        ],
    }
    return Findings(claims, tables, data)


def _asked(found: Sequence[Outcome]) -> list[int]:
    """The questions of those who succeeded, fewest first."""
    return sorted([asked for asked in found if asked is not None])


def _middle(found: Sequence[Outcome]) -> int:
    """Half of all forgers need no more; MOST_QUESTIONS, if not even half succeed."""
    asked = _asked(found)
    place = (len(found) - 1) // 2
    return asked[place] if place < len(asked) else MOST_QUESTIONS


def _taught_claim(row: Row, found: Sequence[Outcome]) -> Claim:
    asked = _asked(found)
    owned = "without a genuine log" if row.genuine == NO_LOG else f"with one genuine log of {row.genuine}"
    spread = f"after {asked[0]} to {asked[-1]} questions, half of them within {_middle(found)}" if asked else "never"
    return Claim(
        f"Told {row.told}, {owned}, {len(asked)} of {len(found)} forgers have a log accepted in which no record is "
        f"genuine, {spread} (threshold {row.threshold:g}).",
        len(asked) == len(found),
    )


def _untaught_claim(untaught: dict[Row, list[Outcome]]) -> Claim:
    outcomes = [outcome for found in untaught.values() for outcome in found]
    asked = _asked(outcomes)
    return Claim(
        f"Told {VIEW}, without a genuine log, {len(asked)} of {len(outcomes)} forgers get anywhere in "
        f"{MOST_QUESTIONS} questions each, who ask about both choices of each step and go with any difference in the "
        "view.",
        not asked,
    )


def _refusals_claim(refusals: Mapping[float, Counter[str]]) -> Claim:
    """Of every row in which forgers are shown no more than a stranger."""
    views = sum([of_threshold.total() for of_threshold in refusals.values()])
    more = sum([len(of_threshold) - 1 for of_threshold in refusals.values() if of_threshold])
    return Claim(
        f"Of {views:,} logs that are not accepted, all of the stranger's views are equal to the letter but for the "
        f"threshold, which the asker knows ({more:,} differ).",
        views > 0 and more == 0,
    )


def _lucky_claim(found: Sequence[Outcome]) -> Claim:
    lucky, bound = len(_asked(found)), LUCKY_QUESTIONS * LUCKY_THRESHOLD
    low = exact_interval(lucky, len(found)).low
    return Claim(
        f"With {LUCKY_QUESTIONS} questions that are written down beforehand, at a threshold of 1/64, {lucky:,} of "
        f"{len(found):,} forgers without a genuine log are accepted once (lower exact 95 % limit {low:.3f}; bound "
        f"{bound:g}).",
        low <= bound,
    )


def _taught_table(taught: dict[Row, list[Outcome]]) -> Table:
    before = {
        (row.told, row.genuine): _middle(found) for row, found in taught.items() if row.threshold == THRESHOLDS[0]
    }
    rows: list[list[Cell]] = []
    for row, found in taught.items():
        asked, middle = _asked(found), _middle(found)
        rows.append(
            [
                row.told,
                row.genuine,
                f"{row.threshold:g}",
                len(found),
                len(asked),
                asked[0] if asked else "-",
                middle,
                asked[-1] if asked else "-",
                middle - before[row.told, row.genuine],
            ]
        )
    columns = ["told", "genuine log", "threshold", "forgers", "succeed", "fewest questions", "half within", "most"]
    note = (
        f"Claims of {PAYLOAD_LEN} bits; a new key, claim and log for each forger. A forged step is one fair choice of "
        "scheme F in a context of its own, and who succeeds has a log accepted that holds no genuine record. A genuine "
        f"log has {GENUINE_STEPS} steps with the list of the paper's example (App. C), and is accepted; it is cut down "
        "until it fails by a hair, and each forged step beside it then tips the scale or does not. More: the middle "
        f"beside that of the first threshold. Nobody asks more than {MOST_QUESTIONS} times."
    )
    return Table("Questions until a forged log is accepted", [*columns, "more"], rows, note)


def _untaught_table(untaught: dict[Row, list[Outcome]], lucky: Sequence[Outcome]) -> Table:
    rows: list[list[Cell]] = [
        [
            row.told,
            f"{row.threshold:g}",
            len(found),
            MOST_QUESTIONS,
            len(_asked(found)),
            f"{MOST_QUESTIONS * row.threshold:.2g}",
        ]
        for row, found in untaught.items()
    ]
    bound = LUCKY_QUESTIONS * LUCKY_THRESHOLD
    rows.append([YES_NO, "1/64", len(lucky), LUCKY_QUESTIONS, len(_asked(lucky)), f"{bound:g}"])
    note = (
        "No genuine log. The bound on the share that is accepted is the number of questions times the threshold. Who "
        "is told the stranger's view asks about both choices of each step and goes with any difference in its text, "
        "half of the time with more and half with less. In the last row forgers go through the choices of the same "
        f"{LUCKY_STEPS} steps, at a threshold at which luck can be seen, and do not adapt. That adapting would not "
        'help is not measured: it follows from the rules, since until the first "yes" all answers are the same.'
    )
    return Table("Without a yes", ["told", "threshold", "forgers", "questions", "accepted", "bound"], rows, note)
