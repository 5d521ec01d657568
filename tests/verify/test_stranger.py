"""Two views of one verdict: what its own words give away to whoever may ask, and that the stranger's view does not."""

import random
import re
from dataclasses import fields, replace

import pytest
from forger import Forger, Question
from support import TICKET_WEIGHTS, dirichlet, marked_log

from agentmark import Embedder, Identity, Registry, SharedKey, StepRecord, StrangerView, Verdict, Verifier
from agentmark.verify.stranger import NamedIdentity

KEY = SharedKey(bytes(range(100, 132)))
STRANGER = SharedKey(bytes(range(200, 232)))
NAMES = Registry(16, [Identity("acme-eu", 0x5EED), Identity("globex", 0x1234, revoked_at="2026-01-01T00:00:00+00:00")])
L = 16


class Scene:
    """A verifier with a secret key that answers questions about a claim, and a forger in front of it."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        key = SharedKey(rng.randbytes(32))
        self.claim = rng.getrandbits(L)
        self.forger = Forger(key.id, L, rng)
        self._key = key
        self._verifier = Verifier(key, payload_len=L)

    def verdict(self, question: Question) -> Verdict:
        return self._verifier.verify(question, claim=self.claim)

    def genuine_log(self, scheme: str) -> list[StepRecord]:
        session = Embedder(self._key, self.claim, payload_len=L, scheme=scheme).session("genuine")
        return [session.choose(TICKET_WEIGHTS).record for _ in range(60)]

    def bits_in_the_sentence(self, question: Question) -> float | None:
        verdict = self.verdict(question)
        if verdict.accepted:
            return None
        said = re.search(r"carr(?:y|ies) (-?[\d.]+) bits", verdict.sentence)
        assert said is not None
        return float(said[1])

    def bits_in_the_strangers_view(self, question: Question) -> float | None:
        """All that moves in the view, as a number."""
        view = self.verdict(question).for_stranger()
        return None if view.accepted else float(len(view.sentence))

    def yes_or_no(self, question: Question) -> bool:
        return self.verdict(question).for_stranger().accepted


# The attack


def test_the_key_holders_sentence_teaches_a_forger_without_a_genuine_log() -> None:
    """20 forgers, threshold 1e-6: each asks at most 35 questions, one a forged step, and is accepted in the end.

    This is why the sentence is not for strangers; if it stopped working, the page that says so would be wrong.
    """
    asked = []
    for seed in range(20):
        scene = Scene(seed)
        assert scene.forger.by_numbers(scene.bits_in_the_sentence, limit=35)
        assert scene.verdict(scene.forger.log).accepted
        asked.append(scene.forger.asked)
    assert min(asked) >= 20, "each answer gives about one of the twenty bits away"


def test_the_strangers_view_does_not() -> None:
    """8 of these forgers with the stranger's answers: nobody gets anywhere in 40 questions.

    Each question is accepted by chance with probability 1e-6 at most, so 320 questions are with at most 0.00032.
    """
    for seed in range(8):
        scene = Scene(seed)
        assert not scene.forger.by_numbers(scene.bits_in_the_strangers_view, limit=40)
        assert not scene.verdict(scene.forger.log).accepted


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_yes_and_no_still_teach_a_forger_who_has_one_genuine_log(scheme: str) -> None:
    """5 forgers with one accepted log each, and 80 questions: all forge a log without any of its records.

    No view can prevent this, since it needs the answer alone: docs/verdict.md says what an operator does about it.
    """
    for seed in range(5):
        scene = Scene(seed)
        genuine = scene.genuine_log(scheme)
        assert scene.yes_or_no(genuine)
        scene.forger.by_yes_and_no(scene.yes_or_no, genuine=genuine, steps=24, limit=80)
        assert not {record.context for record in scene.forger.log} & {record.context for record in genuine}
        assert scene.verdict(scene.forger.log).accepted, scene.forger.asked


def test_yes_and_no_teach_nothing_before_the_first_yes() -> None:
    """Without a genuine log all answers are "no" until one is "yes", so a forger might as well have written all
    questions down beforehand: N of them are accepted with probability at most N times the threshold.

    The best a forger can do is to go through all choices of the same few steps. Hypothesis: at a threshold of 1/64 and
    8 questions, at most 1 in 8 forgers is ever accepted; 150 forgers, five standard errors.
    """
    trials, questions, threshold = 150, 8, 1 / 64
    successes = 0
    for seed in range(trials):
        rng = random.Random(seed)
        key = SharedKey(rng.randbytes(32))
        verifier = Verifier(key, payload_len=L, threshold=threshold)
        claim = rng.getrandbits(L)
        forger = Forger(key.id, L, rng)
        steps = [forger.both_sides() for _ in range(7)]
        asked = [[sides[number >> i & 1] for i, sides in enumerate(steps)] for number in range(questions)]
        successes += any(verifier.verify(question, claim=claim).for_stranger().accepted for question in asked)
    bound = questions * threshold
    assert 0 < successes <= trials * bound + 5 * (trials * bound * (1 - bound)) ** 0.5


# What the view holds


def unaccepted_logs() -> list[list[StepRecord]]:
    """Logs that are not accepted for every reason there is."""
    log = marked_log(KEY, steps=60)
    short = log[:9]
    rng = random.Random(1)
    assert short[0].distribution is not None
    other = next(name for name in short[0].distribution.behaviors if name != short[0].behavior)
    foreign = [replace(r, key_id=KEY.id) for r in marked_log(STRANGER, steps=60)]
    session = Embedder(KEY, 5, payload_len=8).session("odd")
    return [
        [],
        short,
        short[:3],
        [*short, replace(short[0], behavior=other)],
        [*short, short[1].with_enforced(False)],
        foreign,
        foreign + short,
        marked_log(STRANGER, steps=9),
        [replace(record, payload_len=12) for record in log],
        [session.choose(dirichlet(rng, 4, 1.0)).record for _ in range(3)],
        [session.unmarked("a", reason="broken").record],
        marked_log(KEY, steps=9, payload=0x1234),
        [replace(record, session="elsewhere") for record in short],
        [record.with_partial_weights({}) for record in marked_log(KEY, scheme="R", steps=9)],
    ]


@pytest.mark.parametrize("settings", [{}, {"noise": 0.0}, {"registry": NAMES}])
@pytest.mark.parametrize("claim", [None, 0x5EED])
def test_all_logs_that_are_not_accepted_look_the_same(settings: dict[str, object], claim: int | None) -> None:
    verifier = Verifier(KEY, payload_len=L, **settings)  # type: ignore[arg-type]
    verdicts = [verifier.verify(log, claim=claim) for log in unaccepted_logs()]
    assert len({verdict.sentence for verdict in verdicts}) > 5, "the key holder is told what each of them shows"
    assert {verdict.for_stranger() for verdict in verdicts} == {StrangerView(accepted=False, threshold=1e-6)}
    assert len({verdict.for_stranger().sentence for verdict in verdicts}) == 1
    assert len({str(verdict.for_stranger().as_dict()) for verdict in verdicts}) == 1


def test_the_length_that_the_log_states_does_not_show() -> None:
    """Without a pinned length the verdict has that of the log; the view of a log that is not accepted has none."""
    verdicts = [Verifier(KEY).verify(log) for log in unaccepted_logs()]
    assert len({verdict.payload_len for verdict in verdicts}) > 2
    assert len({verdict.for_stranger() for verdict in verdicts}) == 1


def test_all_logs_accepted_for_one_identity_look_the_same() -> None:
    log = marked_log(KEY, steps=80)
    assert log[0].distribution is not None
    other = next(name for name in log[0].distribution.behaviors if name != log[0].behavior)
    logs = [log, log[:50], [*log, replace(log[0], behavior=other)], [*log[5:], *log[10:20]], log + unaccepted_logs()[5]]
    views = {Verifier(KEY, registry=NAMES).verify(part).for_stranger() for part in logs}
    assert views == {StrangerView(accepted=True, threshold=1e-6, found=(NamedIdentity(0x5EED, 16, "acme-eu"),))}


def test_an_accepted_identity_is_named_with_the_threshold_as_its_bound() -> None:
    log = marked_log(KEY, payload=0x1234)
    view = Verifier(KEY, registry=NAMES, threshold=1.4e-6).verify(log).for_stranger()
    assert view.sentence == (
        "Attributed to 'globex' (payload 0x1234, revoked 2026-01-01T00:00:00+00:00): a log made without this key, or "
        "for another identity, is named so with probability at most 1.4e-06."
    )
    assert view.as_dict() == {
        "accepted": True,
        "sentence": view.sentence,
        "payload": "1234",
        "payload_len": 16,
        "identity": "globex",
        "revoked_at": "2026-01-01T00:00:00+00:00",
        "text": None,
        "found": [view.found[0].as_dict()],
        "threshold": 1.4e-6,
    }
    unknown = Verifier(KEY).verify(marked_log(KEY, payload=0x6F6B)).for_stranger()
    assert unknown.found[0].text == "ok"
    assert unknown.sentence.startswith("Attributed to payload 0x6f6b (as text: 'ok'):")
    nobody = Verifier(KEY).verify(marked_log(KEY, payload=0, payload_len=0)).for_stranger()
    assert "the holder of this key" in nobody.sentence


def test_the_view_has_no_other_members() -> None:
    """A member that is added here is one more thing that strangers see: think about what it says of single records."""
    members = {field.name for field in fields(StrangerView)}
    assert members == {"accepted", "threshold", "found"}
    assert {field.name for field in fields(NamedIdentity)} == {"payload", "payload_len", "identity", "revoked_at"}
