"""What an audit asks of an engine: bring pieces of one bucket together, and apply phases to every bucket where it lies.

    input --spread--> pieces (bucket, bytes) --shuffle--> buckets --read under the keys--> logs, kept on the cluster
    logs  --phase, phase, ...--> what each says, small, to the driver; what each has come to, kept beside the logs
    logs  --rows--> a frame of results

`frames.py` does it with Daft and `spark.py` with Spark. Everything that is passed in here is a plain object that can
be pickled, and depends on its arguments alone: a task that the engine runs twice gives the same bytes twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one bucket, from one batch of the input."""

    bucket: int
    content: bytes


class Spreader(Protocol):
    """Sorts a batch of the input into pieces. Holds no key."""

    def __call__(self, batch: Mapping[str, Any]) -> Sequence[Piece]:
        """`batch` has an Arrow array for each column of the input."""


class Reader(Protocol):
    """Makes the logs of a bucket from its pieces, which come in any order; and says something of them."""

    def __call__(self, pieces: Sequence[bytes]) -> tuple[bytes, bytes]: ...


class Phase(Protocol):
    """Takes the logs of a bucket and what they have come to; returns what they come to now, and what to say of it."""

    def __call__(self, bucket: int, logs: bytes, state: bytes) -> tuple[bytes, bytes]: ...


class Rows(Protocol):
    """What a bucket has come to, as rows of the results."""

    @property
    def schema(self) -> Any:
        """The columns, as Arrow has them."""

    def __call__(self, state: bytes) -> list[dict[str, Any]]: ...


class Buckets(Protocol):
    """Buckets that lie on a cluster. Nothing of them comes to the driver but what they say."""

    def apply(self, phase: Phase) -> "Buckets":
        """The same logs, with what they have come to in this phase."""

    def said(self) -> dict[int, bytes]:
        """What each bucket said in the last phase, or when it was read."""

    def results(self, rows: Rows) -> Any:
        """A frame of the engine's own, with a row for each that `rows` makes of the buckets. Lazy: it stays there."""


class Cluster(Protocol):
    """An engine at work on one input."""

    def read(self, spread: Spreader, read: Reader) -> Buckets:
        """The logs of the input, by buckets."""
