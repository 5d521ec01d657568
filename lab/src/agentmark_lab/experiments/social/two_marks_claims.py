"""What is claimed of both marks: that each is read, that neither is found where it is not, and that utility stays."""

from collections.abc import Sequence
from statistics import fmean

from agentmark.core.statistics import wilson_interval
from agentmark_lab.experiments.social.text_utility import JudgedTexts, with_interval
from agentmark_lab.experiments.social.two_marks import BIASED, BOTH, FOUR_LEAVES, PAYLOAD_LEN, TEXTS
from agentmark_lab.experiments.social.two_marks_plan import ABOVE, LIKELY, MEASURES, Setting
from agentmark_lab.experiments.social.two_marks_read import ReadConfiguration, signal_difference
from agentmark_lab.kit.agent_loop import F
from agentmark_lab.kit.equivalence import points, span
from agentmark_lab.kit.experiment import Claim
from agentmark_lab.kit.stats import exact_interval, share_text
from agentmark_lab.kit.utility_tests import Judged


def behavior_claims(what: Setting, read: Sequence[ReadConfiguration]) -> list[Claim]:
    made = []
    for one in read:
        logs = one.logs
        strangers = f"{logs.strangers_naming} of {logs.strangers} strangers' keys name anybody"
        if one.configuration.policy == F:
            made.append(
                Claim(
                    f"{one.name}: the {PAYLOAD_LEN}-bit identity is read at 1e-6 from the behaviors alone "
                    f"({logs.episodes} episodes, {logs.steps} steps, {logs.evidence_bits:.0f} bits of evidence, enough "
                    f"after {logs.named_after:g} steps); {logs.agreeing:,} of {logs.steps:,} steps agree with it, and "
                    f"{strangers}.",
                    logs.named and logs.agreeing == logs.steps and not logs.strangers_naming,
                    # A dozen episodes may be too few.
                    aim=what.quick,
                )
            )
        else:
            made.append(
                Claim(
                    f"{one.name}: nobody is named from behaviors without AgentMark, passed off as marked "
                    f"({logs.steps} steps); {strangers}.",
                    not logs.accepted and not logs.strangers_naming,
                )
            )
    return made


def detection_claims(what: Setting, read: Sequence[ReadConfiguration]) -> list[Claim]:
    made, level = [], what.texts.level
    for one in [one for one in read if one.carries_text_mark]:
        found, count = one.detected(level), len(one.readings)
        made.append(
            Claim(
                f"{one.name}: SynthID-Text is detected in {found} of {count} texts at a level of {level:g}: "
                f"{share_text(found, count, digits=3)}, Wilson 95 %; planned: the lower end at least "
                f"{what.texts.least_detected:g}.",
                wilson_interval(found, count).low >= what.texts.least_detected,
                aim=what.quick,
            )
        )
    null = [reading for one in read if not one.carries_text_mark for reading in one.readings]
    false = sum([reading.p_value <= level for reading in null])
    made.append(
        Claim(
            f"SynthID-Text is reported in {false} of {len(null)} texts that do not carry it, at a level of {level:g}: "
            f"no more than chance allows (exact 99.8 % interval).",
            exact_interval(false, len(null), confidence=0.998).low <= level,
        )
    )
    wrong = [mean for one in read for mean in one.wrong]
    made.append(
        Claim(
            f"Under {what.texts.wrong_keys} wrong keys the mean g-value of all texts is {fmean(wrong):.4f}: one half "
            "within 0.005.",
            abs(fmean(wrong) - 0.5) < 0.005,
        )
    )
    if not what.quick:
        found_signal = signal_difference(*[next(one for one in read if one.configuration == c) for c in (BOTH, TEXTS)])
        margin = what.texts.signal.margin
        made.append(
            Claim(
                f"AgentMark-F in the behaviors takes nothing from SynthID-Text in the answers: mean g-value of both "
                f"against SynthID-Text only {with_interval(found_signal)}, within {margin:g} (TOST, tasks paired).",
                found_signal.equivalent(margin),
                aim=True,
            )
        )
    return made


def utility_claims(what: Setting, judged: Sequence[Judged]) -> list[Claim]:
    made = []
    for configuration in what.configurations:
        mine = [one for one in judged if one.policy == configuration.label]
        if not mine:
            continue
        pairs = f"{mine[0].success.episodes:,} pairs of episodes" + (" in each of two sets" if len(mine) == 2 else "")
        successes = " and ".join(
            [f"{points(one.success.difference)} (90 % {span(one.success.tost_interval)})" for one in mine]
        )
        if not configuration.is_mark:
            made.append(
                Claim(
                    f"{configuration.name} fails the same tests of success and length: {successes} points, {pairs}.",
                    not any(one.passes for one in mine),
                    aim=what.quick,
                )
            )
            continue
        made.append(
            Claim(
                f"{configuration.name}: the agent succeeds as often as with neither mark within "
                f"{100 * what.level.success.margin:g} points, and takes as many steps within "
                f"{what.level.steps.margin:g} (TOST): {successes} points, {pairs}.",
                all(one.same_success and one.same_steps for one in mine),
                aim=True,
            )
        )
        made.append(
            Claim(
                f"{configuration.name}: no task is seen to change, neither in success nor in length: p = "
                f"{' and '.join([f'{one.p_value:.2g}' for one in mine])}.",
                not any(one.is_seen for one in mine),
            )
        )
    return made


def text_claims(what: Setting, read: Sequence[ReadConfiguration], judged: Sequence[JudgedTexts]) -> list[Claim]:
    made = []
    for one, texts in zip(read, judged, strict=True):
        measured = (
            f"{with_interval(texts.found[ABOVE])} nats a token above expectation (90 %), "
            f"{with_interval(texts.found[LIKELY])} in log-probability against neither, {texts.texts} texts"
        )
        if one.configuration in (TEXTS, BOTH):
            made.append(
                Claim(
                    f"{one.name}: the texts are as likely under the model, and as rich in bigrams, as without a mark "
                    f"within the planned margins (TOST): {measured}.",
                    all(texts.same(measure) for measure in MEASURES),
                    aim=True,
                )
            )
            made.append(
                Claim(f"{one.name}: no difference in the texts is seen: p = {texts.p_value:.2g}.", not texts.is_seen)
            )
        if one.configuration in (FOUR_LEAVES, BIASED):
            made.append(
                Claim(
                    f"{one.name}: the texts fail the same tests (by {texts.reasons}): {measured}, "
                    f"p = {texts.p_value:.2g}.",
                    texts.is_seen,
                )
            )
    return made
