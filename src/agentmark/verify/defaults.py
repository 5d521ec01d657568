"""What is assumed unless said otherwise. By itself, so that a command can say so without loading a verifier."""

# The false-positive bound at which an identity is named.
DEFAULT_THRESHOLD = 1e-6

# Where a segment that lost its place is looked for: from the session's first step on.
DEFAULT_OFFSETS = 1000
# Each place tried is a verdict of its own, and has to be paid for.
MAX_OFFSETS = 1_000_000

# Looking for stretches decodes many windows of a log: seconds for this many records, minutes for a thousand.
SEGMENTED_UNASKED = 300
