"""What an experiment hands over, and how it is kept: one JSON file for each, with all that repeats it."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import agentmark
import agentmark_lab
from agentmark.core.errors import AgentMarkError
from agentmark_lab.kit.files import write_whole
from agentmark_lab.kit.model_judge import MODEL_VARIABLE, URL_VARIABLE
from agentmark_lab.kit.options import DEFAULT_ENVIRONMENT, DEFAULT_SEED, Options, Progress
from agentmark_lab.kit.presets import GGUF_VARIABLE
from agentmark_lab.kit.resume import resumable

Cell = str | int | float
# What the result of tasks that somebody brought is called: alfworld-own.
OWN = "own"


class ResultError(AgentMarkError, ValueError):
    """A result file that cannot be read."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(f"result {path}: {fault}")


@dataclass(frozen=True, slots=True)
class Table:
    """Figures as a reader sees them; `note` says how they were obtained."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a figure: points, and the interval of each, if it has one."""

    label: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture of figures that are in the tables too. `name` is that of its file.

    With `x_names` the x of a point is the place of a name, and points are not joined.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    curves: list[Curve]
    y_log: bool = False
    x_names: list[str] | None = None
    x_log: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """One hypothesis with its trials and its outcome. An aim is reported and may be missed: speed is the machine's."""

    text: str
    holds: bool
    aim: bool = False

    @property
    def sentence(self) -> str:
        if self.aim:
            return ("Aim met: " if self.holds else "Aim not met: ") + self.text
        return ("Holds: " if self.holds else "DOES NOT HOLD: ") + self.text


def aims_in_words(aims: Mapping[str, bool]) -> str:
    """For the note of a table: which aims are met, and which are not."""
    met = ", ".join([name for name, holds in aims.items() if holds]) or "none"
    missed = ", ".join([name for name, holds in aims.items() if not holds]) or "none"
    return f" Aims met: {met}. Aims not met: {missed}."


@dataclass(frozen=True, slots=True)
class Findings:
    """The content of an experiment, before it is known when and where it ran."""

    claims: list[Claim]
    tables: list[Table]
    data: dict[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(claim.holds for claim in self.claims if not claim.aim)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it ran."""

    python: str
    platform: str
    cpu: str
    cores: int

    @classmethod
    def here(cls) -> Self:
        return cls(
            python=f"{platform.python_implementation()} {platform.python_version()}",
            platform=platform.platform(),
            cpu=_cpu_model(),
            cores=os.cpu_count() or 1,
        )


@dataclass(frozen=True, slots=True)
class Result:
    """An experiment that was run: what it found, and what it takes to find it again."""

    name: str
    title: str
    command: str
    seed: int
    quick: bool
    machine: Machine
    version: str
    seconds: float
    passed: bool
    claims: list[str]
    tables: list[Table]
    data: dict[str, Any]
    figures: list[Figure] = field(default_factory=list)

    def save(self, folder: Path) -> Path:
        """Write NAME.json; the folder is made if it is missing."""
        path = folder / f"{self.name}.json"
        # Whole, also while another run of the same experiment ends.
        write_whole(path, (json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n").encode("utf-8"))
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            machine = Machine(**content.pop("machine"))
            tables = [Table(**table) for table in content.pop("tables")]
            drawn = content.pop("figures", [])
            figures = [Figure(**{**one, "curves": [Curve(**curve) for curve in one["curves"]]}) for one in drawn]
            return cls(machine=machine, tables=tables, figures=figures, **content)
        except OSError as error:
            raise ResultError(path, f"cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ResultError(path, f"is not a result of the lab: {error}") from None


class Experiment(Protocol):
    """What a module of an experiment offers. It may also set ASKS_MODELS, if its result depends on which models there
    are, and ASKS_JUDGE, if it has something judged where a judge is named; ASKS_ENVIRONMENT, if it plays where
    --environment says, and ASKS_TASKS, if as many tasks as --tasks says; and OWN_TASKS, the option by which somebody
    brings tasks to it, or NO_OWN_TASKS, why nobody can."""

    NAME: str
    TITLE: str

    @staticmethod
    def run(options: Options, progress: Progress) -> Findings: ...


def asks_models(experiment: Experiment) -> bool:
    return bool(getattr(experiment, "ASKS_MODELS", False))


def asks_judge(experiment: Experiment) -> bool:
    return bool(getattr(experiment, "ASKS_JUDGE", False))


def asks_environment(experiment: Experiment) -> bool:
    return bool(getattr(experiment, "ASKS_ENVIRONMENT", False))


def asks_tasks(experiment: Experiment) -> bool:
    return bool(getattr(experiment, "ASKS_TASKS", False))


def own_tasks_option(experiment: Experiment) -> str:
    return str(getattr(experiment, "OWN_TASKS", ""))


def why_no_own_tasks(experiment: Experiment) -> str:
    return str(getattr(experiment, "NO_OWN_TASKS", ""))


def perform(experiment: Experiment, options: Options, progress: Progress) -> Result:
    """Run one experiment and note the circumstances."""
    start = time.perf_counter()
    # As it is now: a run takes hours, and the code may be changed meanwhile.
    version = version_here()
    elsewhere = _elsewhere(experiment, options)
    name = f"{experiment.NAME}-{elsewhere}" if elsewhere else experiment.NAME
    # A quick run is not worth it.
    with nullcontext() if options.quick else resumable(options.work / "unfinished" / name):
        findings = experiment.run(options, progress)
    return Result(
        name=name,
        title=f"{experiment.TITLE}: {elsewhere}" if elsewhere else experiment.TITLE,
        command=_command(experiment, options),
        seed=options.seed,
        quick=options.quick,
        machine=Machine.here(),
        version=version,
        seconds=round(time.perf_counter() - start, 1),
        passed=findings.passed,
        claims=[claim.sentence for claim in findings.claims],
        tables=findings.tables,
        data=findings.data,
        figures=findings.figures,
    )


def _command(experiment: Experiment, options: Options) -> str:
    """What repeats it. Workers and folders change nothing, and are left out."""
    command = f"agentmark lab run {experiment.NAME}"
    if options.quick:
        command += " --quick"
    if options.seed != DEFAULT_SEED:
        command += f" --seed {options.seed}"
    if (elsewhere := _elsewhere(experiment, options)) and not options.own:
        command += f" --environment {elsewhere}"
    if options.tasks and asks_tasks(experiment):
        command += f" --tasks {options.tasks}"
    if options.own:
        # Where they lie is the user's own affair.
        command += f" {own_tasks_option(experiment)} {options.own.name}"
    if options.judge is not None and asks_judge(experiment):
        # Where it was served is no address of anybody else's.
        command = f"{URL_VARIABLE}=URL {MODEL_VARIABLE}={options.judge.name} {command}"
    if not asks_models(experiment):
        return command
    if options.model is not None:
        return f"{command} --model {options.model}"
    files = os.pathsep.join([path.name for path in options.model_files])
    return f"{GGUF_VARIABLE}={files} {command}" if files else command


def _elsewhere(experiment: Experiment, options: Options) -> str:
    """Where a model plays, if not where it usually does; or that somebody brought the tasks. It stands beside the
    usual result."""
    if options.own:
        return OWN
    stated = options.environment if asks_environment(experiment) else None
    return "" if stated in (None, DEFAULT_ENVIRONMENT) else str(stated)


def version_here() -> str:
    """With the commit, in a checkout, and whether the code of the library or the lab had been changed since. A package
    that is installed inside somebody else's checkout is not part of it."""
    package = Path(agentmark.__file__).parent
    if not _git(package, "ls-files", "__init__.py"):
        return agentmark.__version__
    commit = _git(package, "rev-parse", "--short=10", "HEAD")
    lab = Path(str(agentmark_lab.__file__)).parent
    changes = [folder for folder in (package, lab) if _git(folder, "status", "--porcelain", ".")]
    return f"{agentmark.__version__} at {commit}" + (" with changes" if changes else "")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
