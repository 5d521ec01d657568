"""What a run was asked to do. The command line builds it once; experiments hand on to their workers what those need."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_SEED = 1
DEFAULT_WORK = Path("lab-work")
DEFAULT_ENVIRONMENT = "toolbench"

# How an experiment says where it is.
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that was asked for: one of the paper's presets by its name, or any model behind a URL."""

    name: str
    base_url: str = ""
    # Never shown: neither in a message, nor in what outcomes are kept under.
    api_key: str | None = field(default=None, repr=False)

    @property
    def is_preset(self) -> bool:
        return not self.base_url

    def __str__(self) -> str:
        """As it stands behind --model."""
        return self.name if self.is_preset else f"{self.base_url} {self.name}"


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The model that judges, behind a URL."""

    base_url: str
    name: str
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Options:
    """`workers` are processes. `work` is where unfinished runs keep what they have done, models' answers are kept and
    data is unpacked."""

    quick: bool = False
    seed: int = DEFAULT_SEED
    workers: int = 1
    work: Path = DEFAULT_WORK
    # None: the local models that are here, and `model_files` beside them.
    model: ModelChoice | None = None
    model_files: tuple[Path, ...] = ()
    # Where a model plays and how many tasks of each group it is given, for the experiments that leave it open.
    environment: str | None = None
    tasks: int | None = None
    judge: JudgeChoice | None = None
    # The file or folder of tasks that somebody brings to an experiment on utility.
    own: Path | None = None
