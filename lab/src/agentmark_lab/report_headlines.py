"""What the front page of the results shows of each experiment: the claims that matter most."""

# One or two fragments of claims for each experiment: the first claim that holds such a fragment is shown beside it. A
# fragment holds no measured figure, so that it fits whatever is measured next.
HEADLINES: dict[str, tuple[str, ...]] = {
    "roundtrip": (
        "AgentMark-F: ",
        "AgentMark-R: ",
    ),
    "marginals": ("No choice frequency differs",),
    "false_positives": (
        "Unmarked log: ",
        "Wrong key: ",
    ),
    "capacity": (
        "AgentMark-F: the mean bits",
        "AgentMark-R: the mean bits",
    ),
    "samplers": (
        "carries the most",
        "preserve the distribution",
    ),
    "capacity_entropy": (
        "AgentMark-F: on each",
        "AgentMark-R: on each",
    ),
    "counts": (
        "the counts of n replies keep",
        "R, n = 4",
    ),
    "speed": (
        "F encode",
        "R encode",
    ),
    "public_costs": (
        "Choosing",
        "Checking a proof",
    ),
    "log_costs": (
        "Links, state and checkpoints add",
        "whose rates are within the default limits",
    ),
    "validity": (
        "accepted more often than the bound",
        "mean e-value",
    ),
    "monitor": (
        "raises the alarm more often",
        "beats `verify`",
    ),
    "identification": (
        "median",
        "nobody is named",
    ),
    "evidence_power": (
        "R, ToolBench-like, full list, noise: default mixture",
        "R, ALFWorld-like, full list, noise: default mixture",
    ),
    "single_episode": (
        "F, 20 steps",
        "R, 20 steps",
    ),
    "weaker_views": (
        "ToolBench-like, weights at two decimals",
        "ToolBench-like, partial lists",
    ),
    "registry_scale": (
        "F: of ",
        "R: of ",
    ),
    "public": (
        "Random function: ",
        "It can fail",
    ),
    "public_grinding": ("Of 2^k keys",),
    "attacks": (
        "No attack makes the verifier",
        "can be made to help",
    ),
    "forgers": (
        "Told the evidence in bits",
        "get anywhere",
    ),
    "erasure": (
        "80% of the records lost",
        "end is cut off",
    ),
    "splices": (
        "F, L = 16, three agents",
        "R, L = 16, three agents",
    ),
    "rewriting": (
        "F, L = 8, rewritten",
        "R, L = 8, rewritten",
    ),
    "rewording": (
        ", R: ",
        ", F: ",
    ),
    "alfworld": (
        "epsilon 0.6: AgentMark-F succeeds",
        "epsilon 0.6: AgentMark-R succeeds",
        "epsilon 0.6: red-green",
    ),
    "toolbench": (
        "epsilon 0.3: AgentMark-F succeeds",
        "epsilon 0.3: AgentMark-R succeeds",
        "epsilon 0.3: red-green",
    ),
    "bfcl": (
        "epsilon 0.15: AgentMark-F succeeds",
        "epsilon 0.15: AgentMark-R succeeds",
        "epsilon 0.15: red-green",
    ),
    "agentdojo": (
        "epsilon 0.3: AgentMark-F succeeds",
        "epsilon 0.3: AgentMark-R succeeds",
        "epsilon 0.3: red-green",
    ),
    "scienceworld": (
        "epsilon 0.15: AgentMark-F succeeds",
        "epsilon 0.15: AgentMark-R succeeds",
        "epsilon 0.15: red-green",
    ),
    "language_model": (
        "AgentMark-F: the identity is read",
        "AgentMark-R: the identity is read",
    ),
    "model_utility": (
        "AgentMark-R by proposals succeeds",
        "AgentMark-R succeeds",
    ),
    "elicitation": (
        "reading logits",
        "names its identity",
    ),
    "calibration": (
        "logits-names",
        "verbalised",
    ),
    "proposals": (
        "differs in no test",
        "with stated lists at least",
    ),
    "orders": (
        "lie less far apart",
        "closer to what the agent does",
    ),
    "injection": ("is not seen to move",),
    "oasis": (
        "identities are named",
        "the actions of the marked",
    ),
    "synthid": (
        "both: the 16-bit identity",
        "both: SynthID-Text",
        "both: the texts are as likely",
    ),
}
