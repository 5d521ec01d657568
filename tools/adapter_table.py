"""What `make test-adapters` found: each framework, its version, how its tests went, and what no refusal broke.

With `--write`, the table of refusals also goes into docs/frameworks/refusals.md.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
MODES = ("proposals", "stated")
ENDS = "ends as without"
PAGE = ROOT / "docs" / "frameworks" / "refusals.md"
INTRODUCTION = """\
# At providers that refuse

Each adapter runs an agent with the framework's own client over HTTP, at a provider on the loopback that refuses what \
today's providers refuse ([testing](../testing.md)). The agent does two errands without AgentMark and two with it, \
once with proposals and once with stated lists.

A cell is the share of the marked agent's steps that are in the evidence, proposals / stated. The rest of its steps \
are unmarked or were not followed, and the log says so. *Ends as without* means that no such agent can finish, and \
that it ends with the same error. In no cell did a marked agent fail at what the unmarked one finished: a test fails \
if one does.

The replies come from a seeded policy, not from a language model, and the refusals are replayed from documentation \
and public reports. Written by `make test-adapters` and `python tools/adapter_table.py --write`.

"""


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
    # Those on a real model have a target of their own.
    cases = [case for case in ElementTree.parse(report).iter("testcase") if "real_model" not in case.get("name", "")]
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
    found = {name: refusals(name) for name in names}
    table = markdown({name: cells for name, cells in found.items() if cells})
    print(f"\nShare of marked steps at providers that refuse, proposals / stated lists:\n\n{table}")
    if "--write" in sys.argv[1:]:
        missing = [name for name, cells in found.items() if not cells]
        if missing:
            print(f"not written: no table of {', '.join(missing)}")
            return 1
        PAGE.write_text(INTRODUCTION + table, encoding="utf-8")
    return 0 if all_passed else 1


def refusals(name: str) -> dict[str, dict[str, dict[str, float]]]:
    """What the tests of an adapter wrote down: by profile and mode."""
    path = ROOT / ".venvs" / name / "refusals.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def markdown(found: dict[str, dict[str, dict[str, dict[str, float]]]]) -> str:
    """A row for each provider, a column for each framework."""
    profiles = list(dict.fromkeys([profile for cells in found.values() for profile in cells]))
    lines = [f"| provider | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    for profile in profiles:
        cells = [cell(table.get(profile, {})) for table in found.values()]
        lines.append(f"| {profile} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(modes: dict[str, dict[str, float]]) -> str:
    if any(mode not in modes for mode in MODES):
        return "not run"
    ends = [f"{modes[mode]['marked']:.2f}" if modes[mode]["finished"] else ENDS for mode in MODES]
    return ENDS if set(ends) == {ENDS} else " / ".join(ends)


if __name__ == "__main__":
    sys.exit(main())
