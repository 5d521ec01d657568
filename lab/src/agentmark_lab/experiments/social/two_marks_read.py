"""What the behaviors and the answers of a configuration say under the right keys and under wrong ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.experiments.social.passing_off import as_marked
from agentmark_lab.experiments.social.text_utility import Text
from agentmark_lab.experiments.social.two_marks import PAYLOAD_LEN, Configuration, Log, Operator
from agentmark_lab.kit.agent_loop import F
from agentmark_lab.kit.equivalence import Comparison
from agentmark_lab.kit.naming import named_after
from agentmark_lab.peers.synthid_text import TextReading


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """What the behaviors of a configuration say under the operator's key and under strangers'."""

    episodes: int
    steps: int
    # Anybody; and the identity that the log carries, if it carries one.
    accepted: bool
    named: bool
    named_after: float
    evidence_bits: float
    bits: float
    # Steps whose choice is what the identity's coded bits lead to.
    agreeing: int
    # Logs of the tasks of one group alone, and how many of them name the identity.
    groups: int
    groups_named: int
    strangers: int
    strangers_naming: int


def read_logs(logs: Sequence[Log], configuration: Configuration, who: Operator) -> ReadLogs:
    """Behaviors without AgentMark are passed off as marked."""

    def passed_off(records: Sequence[StepRecord]) -> list[StepRecord]:
        marked = configuration.policy == F
        return list(records) if marked else as_marked(records, F, who.key, payload_len=PAYLOAD_LEN)

    records = passed_off([record for log in logs for record in log.records])
    ours = Verifier(who.key, payload_len=PAYLOAD_LEN, any_key_id=True)
    verdict = ours.verify(records)
    readings = ours.take_in(records).readings
    groups = list(dict.fromkeys([log.group for log in logs]))
    alone = [
        ours.verify(passed_off([record for log in logs if log.group == group for record in log.records]))
        for group in groups
    ]
    strange = [Verifier(key, payload_len=PAYLOAD_LEN, any_key_id=True).verify(records) for key in who.strangers]
    return ReadLogs(
        episodes=len(logs),
        steps=len(records),
        accepted=verdict.accepted,
        named=verdict.accepted and verdict.payload == who.payload,
        named_after=named_after(records, who.key, who.payload, payload_len=PAYLOAD_LEN),
        evidence_bits=ours.verify(records, claim=who.payload).evidence_bits,
        bits=sum([reading.evidence_bits for reading in readings]),
        agreeing=sum([reading.e_value(who.payload) > 0 for reading in readings]),
        groups=len(groups),
        groups_named=sum([one.accepted and one.payload == who.payload for one in alone]),
        strangers=len(strange),
        strangers_naming=sum([one.accepted for one in strange]),
    )


@dataclass(frozen=True, slots=True)
class ReadConfiguration:
    """A configuration with what was read of it."""

    configuration: Configuration
    logs: ReadLogs
    texts: list[Text]
    readings: list[TextReading]

    @property
    def name(self) -> str:
        return self.configuration.name

    @property
    def carries_text_mark(self) -> bool:
        return self.configuration.leaves is not None

    @property
    def means(self) -> list[float]:
        return [reading.right.mean for reading in self.readings]

    @property
    def wrong(self) -> list[float]:
        return [mean for reading in self.readings for mean in reading.wrong]

    def detected(self, level: float) -> int:
        return sum([reading.p_value <= level for reading in self.readings])


def signal_difference(one: ReadConfiguration, other: ReadConfiguration) -> Comparison:
    """How much stronger a text's mark is in one configuration than in the other, task by task."""
    without = {text.task: mean for text, mean in zip(other.texts, other.means, strict=True)}
    pairs = zip(one.texts, one.means, strict=True)
    differences = tuple([mean - without[text.task] for text, mean in pairs if text.task in without])
    return Comparison(one.name, len(differences), len(differences), differences, is_share=False)
