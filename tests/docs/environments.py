"""The environment that a page tells its reader to make, made once and kept under `.venvs/docs-NAME`.

The page's own `pip install` commands make it, in a clone, in an environment that has nothing but pip to begin with.
A page without such commands is read in what `make demo` makes.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from blocks import ROOT

VENVS = ROOT / ".venvs"
BASE = "pip install '.[public]'"  # what `make demo` does
# Make is told that it is done: what it would install from a reader's clone would be gone with the clone.
MADE_BY_MAKE = (".runtime", ".demo")
# Not the reader's business, or made anew by what the page runs.
_LEFT_OUT = ("build", "dist", "demo-output", "__pycache__")


def name_for(installs: Iterable[str]) -> str:
    """A short name for an environment, from what is installed in it: the extras, then other packages."""
    words = [
        word
        for line in installs
        for word in re.findall(r"[A-Za-z][\w-]*", re.sub(r"pip install|--\S+|[=<>]=\S+|#.*", "", line))
    ]
    return "docs-" + ("-".join(words) or "base")


def constraints_for(installs: Iterable[str]) -> Path:
    """The pins that the tests of an extra use, so that a page is run with what is known to be tested."""
    for extra in re.findall(r"\.\[([\w-]+)", "\n".join(installs)):
        for pins in (ROOT / "tests" / "adapters" / f"{extra}.txt", ROOT / "tests" / f"{extra}.txt"):
            if pins.exists():
                return pins
    return ROOT / "constraints.txt"


def make(installs: list[str]) -> Path:
    """The environment in which these commands were run, and no others."""
    folder = VENVS / name_for(installs)
    pins = constraints_for(installs)
    # Of the project's settings only what is installed by them.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    made_from = [sys.version, installs, pins.read_text("utf-8"), project]
    fingerprint = sha256(json.dumps(made_from).encode()).hexdigest()
    stamp = folder / ".docs"
    with _alone(folder.with_name(f"{folder.name}.lock")):
        if not stamp.exists() or stamp.read_text("utf-8") != fingerprint:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            for line in installs or [BASE]:
                _install(line, folder, pins)
            stamp.write_text(fingerprint, "utf-8")
        for target in MADE_BY_MAKE:
            (folder / target).touch()
    return folder


def what_it_imports(folder: Path) -> Path:
    """Where the environment finds AgentMark."""
    told = "import agentmark; print(agentmark.__file__)"
    words = [folder / "bin" / "python", "-I", "-c", told]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return Path(done.stdout.strip() or done.stderr)


def _install(line: str, folder: Path, pins: Path) -> None:
    # Editable, so that the page is run against the code as it stands and not as it stood when this was made.
    line = re.sub(r"(?<=\s)(?='?\.(?:['\[\s]|$))", "--editable ", line)
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    if line.startswith("pip"):  # The Makefile has pins of its own.
        environment |= {"PIP_CONSTRAINT": str(pins), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{line}\n{done.stderr}")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Tests run in several processes, and one of them makes an environment while the others wait for it."""
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def clone(into: Path, environment: Path | None = None) -> Path:
    """A copy of the project as a reader has it after cloning, with the environment in its place, if there is one."""
    folder = into / "clone"
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name.startswith(".") or path.name in _LEFT_OUT:
            continue
        if path.is_dir():
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        else:
            shutil.copy2(path, folder)
    if environment is not None:
        (folder / ".venv").symlink_to(environment, target_is_directory=True)
    if (VENVS / "lab" / ".ready").exists():
        (folder / ".venvs").symlink_to(VENVS, target_is_directory=True)
    return folder


def surroundings(home: Path) -> dict[str, str]:
    """The variables of a reader's terminal, in which no environment is active yet."""
    outside = [entry for entry in os.environ["PATH"].split(":") if not (Path(entry) / "activate").exists()]
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "USER") if name in os.environ}
    return kept | {"PATH": ":".join(outside), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
