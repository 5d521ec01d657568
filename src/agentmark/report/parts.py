"""The parts of a report, as `docs/report.md` lists them: no floats, no secrets, every text as it was read."""

from typing import TypedDict

from agentmark.report.chain_part import ChainPart
from agentmark.report.disclosed_part import DisclosedPart, RestsOnPart
from agentmark.report.provenance import InputFile

REPORT_VERSION = 1
# How a report for those who do not hold the key says so.
STRANGERS_VIEW = "stranger"

CONSISTENT = "consistent"
CONTRADICTING = "contradicting"
IMPOSSIBLE_STEP = "impossible"
ERASED = "erased"
UNSETTLED = "unsettled"


class RunnerUpPart(TypedDict):
    evidence_bits: str | None


class FoundPart(TypedDict):
    """An identity that is accepted, one of several perhaps."""

    payload: str
    identity: str | None
    revoked_at: str | None
    text: str | None
    evidence_bits: str | None
    bits_paid: str
    bound: str
    bound_in_words: str
    at_least_steps: int


class VerdictPart(TypedDict):
    accepted: bool
    standing: str
    sentence: str
    found: list[FoundPart]
    identity: str | None
    revoked_at: str | None
    payload: str | None
    text: str | None
    payload_len: int
    route: str | None
    consistent: bool | None
    schemes: list[str]
    bound: str
    bound_in_words: str
    threshold: str
    evidence_bits: str | None
    bits_paid: str
    surplus_bits: str | None
    level_bits: str
    potential_bits: str
    likely_noise: str
    rank: int
    used: int
    agreeing: int
    contradicting: int
    unexplained: int
    records: int
    outcomes: dict[str, int]
    bits_needed: str | None
    steps_needed: int | None
    work: str
    work_note: str | None
    runner_up: RunnerUpPart | None


class OwnershipPart(TypedDict):
    evidence_bits: str | None
    bits_paid: str
    bound: str
    bound_in_words: str


class PlacePart(TypedDict):
    session: str
    offsets_tried: int
    offset: int | None


class QuestionPart(TypedDict):
    claim: str | None
    claim_taken_as: str | None
    registry_size: int | None
    noise_rates: list[str]
    place: PlacePart | None


class GrowthPart(TypedDict):
    of: str
    points: list[tuple[int, str | None]]


class RankPart(TypedDict):
    equations: int
    points: list[tuple[int, int]]


class SegmentPart(TypedDict):
    payload: str | None
    identity: str | None
    first_step: int
    last_step: int
    first_record: str
    last_record: str
    steps: int
    evidence_bits: str | None
    bound: str


class StepPart(TypedDict):
    record: int
    session: str
    step: int
    scheme: str
    candidates: list[tuple[str, int]]
    candidates_left_out: int
    choice: str
    finding: str
    outcome: str
    reason: str | None
    evidence_bits: str | None


class Report(TypedDict):
    """All that a report says. No floats, no secrets; every text is as it was read."""

    agentmark_report: int
    made_at: str
    case_number: str | None
    author: str | None
    note: str | None
    versions: dict[str, str]
    command: str
    keys: list[str]
    inputs: list[InputFile]
    question: QuestionPart
    verdict: VerdictPart
    # In public mode, against whom the verdict holds.
    rests_on: RestsOnPart | None
    # And what it is repeated from, unless that is more than a report carries.
    disclosed: DisclosedPart | None
    ownership: OwnershipPart | None
    control: VerdictPart
    growth: GrowthPart
    rank_growth: RankPart | None
    findings: list[str]
    passed_over: list[str]
    chains: list[ChainPart]
    segments: list[SegmentPart]
    steps: list[StepPart]
    steps_left_out: int


class NamedPart(TypedDict):
    """An identity that a stranger is told of, and nothing of how clearly it shows."""

    payload: str
    identity: str | None
    revoked_at: str | None
    text: str | None


class StrangerVerdictPart(TypedDict):
    accepted: bool
    sentence: str
    found: list[NamedPart]
    identity: str | None
    revoked_at: str | None
    payload: str | None
    text: str | None
    payload_len: int | None
    threshold: str


class StrangerReport(TypedDict):
    """What a report says to those who do not hold the key: nothing in it moves with a single record, except the files'
    own digests and what could not be read of them."""

    agentmark_report: int
    view: str
    made_at: str
    case_number: str | None
    author: str | None
    note: str | None
    versions: dict[str, str]
    command: str
    keys: list[str]
    inputs: list[InputFile]
    question: QuestionPart
    verdict: StrangerVerdictPart
    findings: list[str]
    passed_over: list[str]
