"""How the front page of the results is arranged: which experiment stands in which group, and what is shown of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """A heading of the front page.

    `experiments` maps a name to one or two fragments of claims: the first claim with such a fragment is shown beside
    the experiment. A fragment holds no measured figure, so that it fits whatever is measured next.
    """

    title: str
    question: str
    experiments: dict[str, tuple[str, ...]]


GROUPS = (
    Group(
        "Theory",
        "Do the schemes behave as the closed forms say, and what does a step cost?",
        {
            "roundtrip": ("AgentMark-F: ", "AgentMark-R: "),
            "marginals": ("No choice frequency differs",),
            "false_positives": ("Unmarked log: ", "Wrong key: "),
            "capacity": ("AgentMark-F: the mean bits", "AgentMark-R: the mean bits"),
            "samplers": ("carries the most", "preserve the distribution"),
            "capacity_entropy": ("AgentMark-F: on each", "AgentMark-R: on each"),
            "speed": ("F encode", "R encode"),
        },
    ),
    Group(
        "Verification",
        "Does the false-positive bound hold, and how soon is an identity named?",
        {
            "validity": ("accepted more often than the bound", "mean e-value"),
            "identification": ("median", "nobody is named"),
            "evidence_power": (
                "R, ToolBench-like, full list, noise: default mixture",
                "R, ALFWorld-like, full list, noise: default mixture",
            ),
            "single_episode": ("F, 20 steps", "R, 20 steps"),
            "weaker_views": ("ToolBench-like, weights at two decimals", "ToolBench-like, partial lists"),
            "registry_scale": ("F: of ", "R: of "),
        },
    ),
    Group(
        "Attacks",
        "What does a log withstand that was damaged, spliced, reworded or forged?",
        {
            "attacks": ("No attack makes the verifier", "can be made to help"),
            "erasure": ("50% of the records lost", "80% of the records lost"),
            "splices": ("F, L = 16, three agents", "R, L = 16, three agents"),
            "rewriting": ("F, L = 8, rewritten", "R, L = 8, rewritten"),
            "rewording": (", R: ", ", F: "),
        },
    ),
    Group(
        "Utility",
        "Does an agent still succeed as often? The agent is an expert with a share of chance, epsilon, and no language "
        "model; each experiment is shown at its largest epsilon.",
        {
            "alfworld": (
                "Epsilon 0.5, ID and OOD together: AgentMark-F succeeds",
                "Epsilon 0.5, ID and OOD together: AgentMark-R succeeds",
            ),
            "toolbench": ("epsilon 0.15: AgentMark-F succeeds", "epsilon 0.15: AgentMark-R succeeds"),
            "bfcl": ("epsilon 0.15: AgentMark-F succeeds", "epsilon 0.15: AgentMark-R succeeds"),
            "agentdojo": ("epsilon 0.15: AgentMark-F succeeds", "epsilon 0.15: AgentMark-R succeeds"),
            "scienceworld": ("epsilon 0.15: AgentMark-F succeeds", "epsilon 0.15: AgentMark-R succeeds"),
        },
    ),
    Group(
        "Models",
        "What changes when a real language model states the lists?",
        {
            "language_model": ("AgentMark-F: the identity is read", "AgentMark-R: the identity is read"),
            "model_utility": ("AgentMark-F succeeds", "AgentMark-R succeeds"),
            "elicitation": ("reading logits", "names its identity"),
            "calibration": ("logits-names", "verbalised"),
        },
    ),
    Group(
        "Social",
        "Agents on a social platform, and a watermark in their texts beside the one in their behaviors.",
        {
            "oasis": ("identities are named", "the actions of the marked"),
            "synthid": ("both: the 8-bit identity", "both: SynthID-Text"),
        },
    ),
)

# For the result of an experiment that stands in no group.
OTHERS = Group("Others", "Results of experiments that stand in no group.", {})
