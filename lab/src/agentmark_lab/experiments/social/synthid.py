"""Two marks in one run: AgentMark in what the agents do, SynthID-Text in what they write (Table 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from agentmark.errors import SettingError
from agentmark.keys.shared import SharedKey
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.oasis import TWITTER, Member, Trajectory, load_package, simulate
from agentmark_lab.envs.oasis_personas import LABEL, load_scenario
from agentmark_lab.experiments.social.local_writer import MODEL, LocalWriter, load_model, tokenise
from agentmark_lab.experiments.social.passing_off import as_marked
from agentmark_lab.kit.agent_loop import BASELINE, F, chooser_for
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.stats import exact_interval, mean_interval, share_text
from agentmark_lab.peers.synthid_text import NGRAM_LEN, TOP_K, GValues, Reader, SynthId, sampling_table

NAME = "synthid"
TITLE = "Table 3: AgentMark in the behaviors and SynthID-Text in the texts of the same run"

PAYLOAD_LEN = 8
LAYERS = 30
WRONG_KEYS = 99
TEXT_LEVEL = 1 / (WRONG_KEYS + 1)
# Many agents and few steps: all texts of a step are written together, which costs little more than one.
AGENTS_A_PERSONA = 2
STEPS, QUICK_STEPS = 3, 1
TOKENS, QUICK_TOKENS = 150, 60
PAPER_DETECTION = "96.64 ± 0.06 %"


@dataclass(frozen=True, slots=True)
class Configuration:
    name: str
    policy: str
    # Leaves of SynthID's tournament; None: it is off.
    leaves: int | None


CONFIGURATIONS = (
    Configuration("SynthID-Text only", BASELINE, 4),
    Configuration("AgentMark-F only", F, None),
    Configuration("both", F, 4),
    Configuration("both, 2 leaves", F, 2),
)
QUICK_CONFIGURATIONS = CONFIGURATIONS[1:3]


def run(options: Options, progress: Progress) -> Findings:
    """One thread and one process, whatever the workers: two collapse on a busy machine."""
    load_package(options.work)
    load_model(options.work)
    rng = generator(options.seed, NAME, "keys")
    keys = tuple([rng.getrandbits(31) for _ in range(LAYERS)])
    wrong = [[rng.getrandbits(31) for _ in range(LAYERS)] for _ in range(WRONG_KEYS)]
    reader = Reader(sampling_table())
    results = []
    for configuration in QUICK_CONFIGURATIONS if options.quick else CONFIGURATIONS:
        trajectories = _run(configuration, keys, options)
        texts = [read_text(reader, tokenise(text, options.work), keys, wrong) for text in written(trajectories)]
        if not texts:
            raise SettingError("seed", f"{options.seed}: nobody writes anything under {configuration.name!r}")
        results.append(_judged(configuration, trajectories, texts, options.seed))
        progress(f"{configuration.name}: {len(texts)} texts, {results[-1].detected} detected")
    return _findings(results, quick=options.quick)


def _key(seed: int) -> tuple[SharedKey, int, SharedKey]:
    """The key and the identity of the agents' operator, and the key of a stranger."""
    rng = generator(seed, NAME, "identity")
    return random_key(rng), rng.getrandbits(PAYLOAD_LEN), random_key(rng)


def _run(configuration: Configuration, keys: tuple[int, ...], options: Options) -> list[Trajectory]:
    """Agents of one operator on the Twitter-like platform of OASIS."""
    seed = options.seed
    key, payload, _ = _key(seed)
    members = [
        Member(
            persona,
            chooser_for(
                configuration.policy,
                key=key,
                payload=payload,
                payload_len=PAYLOAD_LEN,
                # Matched: the same sessions in every configuration.
                rng=generator(seed, NAME, persona.name, number),
            ),
        )
        for number in range(AGENTS_A_PERSONA)
        for persona in load_scenario(TWITTER.name).personas
    ]
    mark = None if configuration.leaves is None else SynthId(keys, configuration.leaves)
    writer = LocalWriter(
        options.work,
        mark=mark,
        tokens=QUICK_TOKENS if options.quick else TOKENS,
        seed=generator(seed, NAME, configuration.name).getrandbits(32),
    )
    with TemporaryDirectory() as folder:
        return simulate(
            TWITTER,
            members,
            steps=QUICK_STEPS if options.quick else STEPS,
            seed=seed,
            work=options.work,
            database=Path(folder) / "platform.db",
            writer=writer,
        )


def written(trajectories: Sequence[Trajectory]) -> list[str]:
    """What the agents wrote, as they posted it."""
    arguments = [act.arguments for one in trajectories for act in one.acts]
    return [given[name] for given in arguments for name in ("content", "quote_content") if name in given]


@dataclass(frozen=True, slots=True)
class TextReading:
    """A text under the key and under wrong ones. p: how often a wrong key does as well, the right one counted in."""

    tokens: int
    right: GValues
    wrong: list[float]

    @property
    def p_value(self) -> float:
        return (1 + sum([mean >= self.right.mean for mean in self.wrong])) / (1 + len(self.wrong))

    @property
    def detected(self) -> bool:
        return self.p_value <= TEXT_LEVEL


def read_text(
    reader: Reader, tokens: Sequence[int], keys: Sequence[int], wrong: Sequence[Sequence[int]]
) -> TextReading:
    hashes = reader.hashes(tokens)
    return TextReading(len(tokens), reader.flips(hashes, keys), [reader.flips(hashes, one).mean for one in wrong])


@dataclass(frozen=True, slots=True)
class Judged:
    """A configuration: what its logs say under our key and under a stranger's, and what its texts say."""

    configuration: Configuration
    steps: int
    # Anybody; and the identity that the log carries, if it carries one.
    accepted: bool
    named: bool
    evidence_bits: float
    bits: float
    named_by_stranger: bool
    texts: list[TextReading]

    @property
    def detected(self) -> int:
        return sum([text.detected for text in self.texts])


def _judged(
    configuration: Configuration, trajectories: Sequence[Trajectory], texts: list[TextReading], seed: int
) -> Judged:
    key, payload, stranger = _key(seed)
    records = [record for one in trajectories for record in one.records]
    if configuration.policy == BASELINE:
        records = as_marked(records, F, key, payload_len=PAYLOAD_LEN)
    ours = Verifier(key, payload_len=PAYLOAD_LEN, any_key_id=True)
    verdict = ours.verify(records)
    return Judged(
        configuration=configuration,
        steps=len(records),
        accepted=verdict.accepted,
        named=verdict.accepted and verdict.payload == payload,
        evidence_bits=ours.verify(records, claim=payload).evidence_bits,
        bits=sum([reading.evidence_bits for reading in ours.take_in(records).readings]),
        named_by_stranger=Verifier(stranger, payload_len=PAYLOAD_LEN, any_key_id=True).verify(records).accepted,
        texts=texts,
    )


# Findings ------------------------------------------------------------------------------------------------------------


def _findings(results: Sequence[Judged], *, quick: bool) -> Findings:
    claims = []
    for one in results:
        name, texts = one.configuration.name, one.texts
        if one.configuration.policy == F:
            claims.append(
                Claim(
                    f"{name}: the 8-bit identity is recovered at 1e-6 from the behaviors of the run ({one.steps} "
                    f"steps, {one.evidence_bits:.0f} bits of evidence), and a stranger's key names nobody.",
                    one.named and not one.named_by_stranger,
                    # Ten steps are too few.
                    aim=quick,
                )
            )
        else:
            claims.append(
                Claim(
                    f"{name}: nobody is named from behaviors without AgentMark, passed off as marked.",
                    not one.accepted and not one.named_by_stranger,
                )
            )
        if one.configuration.leaves is None:
            low = exact_interval(one.detected, len(texts), confidence=0.998).low
            claims.append(
                Claim(
                    f"{name}: SynthID-Text is reported in {one.detected} of {len(texts)} texts that do not carry it, "
                    f"at a level of {TEXT_LEVEL:g}.",
                    low <= TEXT_LEVEL,
                )
            )
        else:
            claims.append(
                Claim(
                    f"{name}: SynthID-Text is detected in {one.detected} of {len(texts)} texts at a level of "
                    f"{TEXT_LEVEL:g}: {share_text(one.detected, len(texts))}, Wilson 95 % (aim: all of them; the "
                    f"paper, with another model and detector: {PAPER_DETECTION}).",
                    one.detected == len(texts),
                    aim=True,
                )
            )
    wrong = [mean for one in results for text in one.texts for mean in text.wrong]
    claims.append(
        Claim(
            f"Under {WRONG_KEYS} wrong keys the mean g-value is {fmean(wrong):.4f}: one half within 0.005.",
            abs(fmean(wrong) - 0.5) < 0.005,
        )
    )
    data = {
        "model": MODEL,
        "policy": LABEL,
        "configurations": [
            {
                "name": one.configuration.name,
                "leaves": one.configuration.leaves,
                "steps": one.steps,
                "evidence_bits": one.evidence_bits,
                "texts": [
                    {"tokens": t.tokens, "flips": t.right.flips, "mean_g": t.right.mean, "p": t.p_value}
                    for t in one.texts
                ],
            }
            for one in results
        ],
    }
    return Findings(claims, [_table(results), _comparison(results)], data)


def _table(results: Sequence[Judged]) -> Table:
    rows: list[list[Cell]] = []
    for one in results:
        means = [text.right.mean for text in one.texts]
        wrong = [mean for text in one.texts for mean in text.wrong]
        rows.append(
            [
                one.configuration.name,
                one.steps,
                "recovered" if one.named else "not named",
                f"{one.evidence_bits:.0f}",
                f"{one.bits / one.steps:.2f}" if one.configuration.policy == F else "",
                "names somebody" if one.named_by_stranger else "names nobody",
                len(one.texts),
                f"{fmean([text.tokens for text in one.texts]):.0f}",
                _mean(means),
                f"{min(means):.3f} to {max(means):.3f}",
                f"{fmean(wrong):.3f} ({min(wrong):.3f} to {max(wrong):.3f})",
                f"{one.detected} of {len(one.texts)}: {share_text(one.detected, len(one.texts))}",
            ]
        )
    columns = [
        "configuration",
        "steps",
        "identity from the behaviors, 1e-6",
        "evidence bits",
        "bits/step",
        "stranger's key",
        "texts",
        "tokens/text",
        "mean g-value",
        "range over texts",
        "wrong keys: mean (range)",
        "SynthID-Text detected at 0.01",
    ]
    note = (
        f"P_t: {LABEL}. Texts: {MODEL}, through transformers, temperature 1, the {TOP_K} likeliest tokens. Ten agents "
        f"of one operator on OASIS' Twitter-like platform; each post and quote is written by the model. SynthID-Text: "
        f"n-grams of {NGRAM_LEN}, {LAYERS} keys, 4 leaves as in the paper (2 are what transformers has). The detector "
        f"is not trained: the mean of the g-values of the posted text, tokenised anew, repeated contexts left out; "
        f"detected: above all of {WRONG_KEYS} wrong keys. Intervals: 95 %. Configurations with AgentMark have the same "
        "key, sessions and lists, and so the same behaviors: what differs is how the texts were written."
    )
    return Table("Both marks in one run", columns, rows, note)


def _comparison(results: Sequence[Judged]) -> Table:
    rows: list[list[Cell]] = [
        [
            one.configuration.name,
            "yes" if one.configuration.policy == F else "no",
            "-" if one.configuration.policy != F else ("yes" if one.named else "no"),
            "-" if one.configuration.leaves is None else f"{100 * one.detected / len(one.texts):.1f} %",
        ]
        for one in results
    ]
    rows.append(["both, the paper's figures (not ours)", "yes", "100 %", PAPER_DETECTION])
    note = (
        "The paper: ToolBench, 149 trajectories, Llama-3.2-3B-Instruct, MarkLLM's detector. Its figures stand here for "
        "orientation; neither the model nor the detector is the same."
    )
    columns = ["configuration", "multi-bit", "behaviors decoded", "content detected"]
    return Table("Beside the paper's Table 3", columns, rows, note)


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{fmean(values):.3f}"
    interval = mean_interval(values)
    return f"{fmean(values):.3f} ({interval.low:.3f} to {interval.high:.3f})"
