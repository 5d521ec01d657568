"""What `make test-adapters` found: each framework, its version, and how its tests went."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent


def framework_version(name: str) -> str:
    """The installed version of the package that the extra of this name asks for."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    package = extras[name][0].split(">")[0].split("=")[0]
    script = f"import importlib.metadata as m; print(m.version({json.dumps(package)}))"
    python = ROOT / ".venvs" / name / "bin" / "python"
    if not python.exists():
        return "not installed"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "not installed"


def outcome(name: str) -> tuple[bool, str]:
    """Whether its tests ran and all passed, and how many."""
    report = ROOT / ".venvs" / name / "tests.xml"
    if not report.exists():
        return False, "did not run"
    cases = list(ElementTree.parse(report).iter("testcase"))
    passed = sum(all(child.tag not in ("failure", "error", "skipped") for child in case) for case in cases)
    return 0 < passed == len(cases), f"{passed} of {len(cases)}"


def main() -> int:
    names = sorted(path.stem for path in (ROOT / "tests" / "adapters").glob("*.txt"))
    print(f"{'framework':<16}{'version':<16}passed")
    all_passed = True
    for name in names:
        passed, text = outcome(name)
        all_passed = all_passed and passed
        print(f"{name:<16}{framework_version(name):<16}{text}")
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
