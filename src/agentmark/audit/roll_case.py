"""A case in which each session, or each file, is asked about by itself.

    case = Case(logs=[Path("logs/")], keys=[SharedKey.load("key.json")], registry=registry)
    answer = RollCase(case=case).answer()
    print(answer.roll.sentence)

    logs --Case.read--> Material --by session or file--> LogState each --judge_roll--> Roll --> RollAnswer
                           |                                (once more with random keys for the control)
                           |--by file--> chains, what was passed over, digests for the report

Every file is read once, every record under the keys once, and each group alone. All records are held while that goes
on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agentmark.audit.case import CONTROL_PART, Case
from agentmark.audit.engine import Engine, PlainEngine
from agentmark.audit.material import Material, Part
from agentmark.audit.progress import Progress, Silent
from agentmark.disclosure.basis import PublicBasis
from agentmark.errors import SettingError
from agentmark.report.chain_part import ChainPart
from agentmark.verify.correction import Correction, Familywise
from agentmark.verify.keyring import Keyring
from agentmark.verify.many import Group, judge_roll
from agentmark.verify.roll import By, Roll
from agentmark.verify.verdict import Standing
from agentmark.verify.work import Work, reading_work

if TYPE_CHECKING:
    from agentmark.report.roll_content import RollReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRoll:
    """The same logs read with random keys: how many of those that have a usable step these name somebody in."""

    attributed: int
    judged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RollCase:
    """What is asked of each. The case's threshold is the promise for all of them together."""

    case: Case
    by: By = By.SESSION
    # Familywise at the case's threshold, unless said otherwise.
    correction: Correction | None = None
    # Whether identities are looked for that explain short logs together.
    pools: bool = True
    # The options of the command without its files, for the commands in a report.
    options: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        if self.case.place is not None:
            raise SettingError("place", "a lost place is looked for in one session")

    def answer(
        self,
        material: Material | None = None,
        *,
        engine: Engine | None = None,
        progress: Progress | None = None,
    ) -> "RollAnswer":
        """Read the logs once (unless that was done), judge each part, and (if asked) take them in with random keys."""
        progress = progress or Silent()
        return _RollInquiry(self, material or self.case.read(progress), engine or PlainEngine(), progress).answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class RollAnswer:
    """All that there is to say: the roll, what it is compared with, and what else the files show."""

    roll: Roll
    # In public mode, against whom it holds.
    basis: PublicBasis | None = None
    # What was disclosed and is not here, in sentences.
    missing: Sequence[str] = ()
    control: ControlRoll | None = None
    chains: Sequence[ChainPart] = ()
    claim: str | None = None
    claim_taken_as: str | None = None
    # What was not read, in sentences.
    passed_over: Sequence[str] = ()
    # The keys that the records state, whoever holds them, and those that were given.
    key_ids_there: Sequence[str] = ()
    key_ids_given: Sequence[str] = ()
    report: "RollReport | None" = None

    @property
    def nothing_usable(self) -> bool:
        """Whether no record in any of it can be used."""
        return self.roll.standings[Standing.NOTHING_USABLE] == len(self.roll.rows)


class _RollInquiry:
    """One such case at work."""

    def __init__(self, asked: RollCase, material: Material, engine: Engine, progress: Progress) -> None:
        self._asked = asked
        self._case = asked.case
        self._material = material
        self._engine = engine
        self._progress = progress
        self._parts = material.parts(asked.by)

    def answer(self) -> RollAnswer:
        case = self._case
        verifier = case.verifier()
        order = case.report
        answer = RollAnswer(
            roll=self._judged(verifier.keys, self._reading_work()),
            basis=case.basis,
            missing=self._material.missing(case.keys),
            chains=self._material.chains(case.public_keys),
            claim=case.claim_in_words,
            claim_taken_as=case.claim_taken_as,
            passed_over=self._material.passed_over,
            key_ids_there=self._material.key_ids,
            key_ids_given=verifier.keys.ids,
        )
        if case.control:
            answer = replace(answer, control=self._control(verifier.keys.strangers()))
        if order is not None:
            from agentmark.report.roll_content import build_roll_report

            report = build_roll_report(
                answer.roll,
                provenance=case.provenance(order, self._material),
                noise_rates=verifier.noise_rates,
                claim=answer.claim,
                claim_taken_as=answer.claim_taken_as,
                registry_size=case.registry_size,
                options=self._asked.options,
                findings=[
                    *self._basis_sentences(),
                    *answer.missing,
                    *self._chain_sentences(answer.chains),
                    *self._material.changed(case.registry_file),
                ],
                passed_over=answer.passed_over,
                for_stranger=order.for_stranger,
            )
            answer = replace(answer, report=report)
        return answer

    def _judged(self, keys: Keyring, reading: Work, *, work_limit: int | None = None, pools: bool = True) -> Roll:
        asked, case = self._asked, self._case
        verifier = case.verifier()
        if work_limit is not None:
            verifier.judge = replace(verifier.judge, work_limit=work_limit)
        groups = [self._group(done, part, keys, reading) for done, part in enumerate(self._parts)]
        return judge_roll(
            verifier,
            groups,
            by=asked.by,
            correction=asked.correction or Familywise(case.threshold),
            claim=case.claim,
            pools=asked.pools and pools,
            watch=lambda done, total: self._progress.count(done, total, f"{asked.by}s judged"),
        )

    def _group(self, done: int, part: Part, keys: Keyring, reading: Work) -> Group:
        self._progress.count(done, len(self._parts), f"{self._asked.by}s read under the key")
        state = self._engine.take_in(part.by_file.values(), keys, reading)
        return Group(name=part.name, files=part.files, state=state, disclosed=keys.disclosed)

    def _control(self, strangers: Keyring) -> ControlRoll:
        """A stranger's key finds nothing however long it looks: a part of the work is enough to see that."""
        self._progress.say("reading everything with a random key, for comparison")
        reading = Work(self._reading_work().limit / CONTROL_PART)
        work_limit = max(1, self._case.work_limit // CONTROL_PART)
        roll = self._judged(strangers, reading, work_limit=work_limit, pools=False)
        return ControlRoll(attributed=roll.standings[Standing.ATTRIBUTED], judged=roll.questions)

    def _reading_work(self) -> Work:
        return reading_work(self._case.work_limit, self._material.size_to_read)

    def _basis_sentences(self) -> list[str]:
        return [] if self._case.basis is None else [self._case.basis.sentence]

    @staticmethod
    def _chain_sentences(chains: Sequence[ChainPart]) -> list[str]:
        return [f"chain of {chain['log']}: {chain['sentence']}" for chain in chains]
