"""Make hostile files of at most a megabyte, run the commands on each, and print what it cost and how it ended.

    python tools/hostile_files.py                    the table on standard output; exit 1 if anything is over its bounds
    python tools/hostile_files.py --only r-few-steps --command verify
    python tools/hostile_files.py --keep FOLDER      also keep the files
    python tools/hostile_files.py --write            also put the table into docs/hostile-files.md

A run is within bounds with at most 10 s of processor time, 500 MB of memory, and an end that the help documents.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from hostile import chains, exports, packed_logs, plain_logs
from hostile.files import HostileFile, Maker, checked_size
from hostile.measure import Limits, Measured, measure

from agentmark import SharedKey

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "hostile-files.md"
FILES: tuple[HostileFile, ...] = (*plain_logs.FILES, *packed_logs.FILES, *chains.FILES, *exports.FILES)

MAX_CPU_S, MAX_MB = 10.0, 500.0
KEY_FILE = "key.json"
# {log} and {key} are the files; whatever a command writes goes to the folder it runs in.
COMMANDS: Mapping[str, Sequence[str]] = {
    "verify": ("-m", "agentmark", "verify", "{log}", "--key", "{key}"),
    "verify with control and report": (
        *("-m", "agentmark", "verify", "{log}", "--key", "{key}"),
        *("--skip-bad", "--control", "--report", "report.html"),
    ),
    "inspect": ("-m", "agentmark", "inspect", "{log}", "--skip-bad"),
    "chain": ("-m", "agentmark", "chain", "{log}"),
    "monitor": ("-m", "agentmark", "monitor", "{log}", "--key", "{key}"),
    "audit from Python": (str(Path(__file__).parent / "hostile" / "audit_case.py"), "{log}", "{key}"),
}
INTRODUCTION = f"""\
# Hostile files

Whoever hands in a log may have made it to cost its reader time or memory. These files have at most a megabyte each, \
and are made without the key, from what is public: its id, and the formats. Each goes through every command that \
reads logs, in a process of its own.

The bounds: at most {MAX_CPU_S:.0f} s of processor time, at most {MAX_MB:.0f} MB of memory at the peak, and an end \
that the help documents (exit 0 to 3, no traceback). What is beyond them is in bold. Written by `make hostile`, \
which fails if anything is; [testing](testing.md) says how the same is fuzzed.

The verdicts are read with the default settings; with control and report, from Python, and by `inspect`, broken \
records are passed over (`--skip-bad`).

"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", choices=[file.name for file in FILES])
    parser.add_argument("--command", action="append", choices=list(COMMANDS))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="make the files there, and leave them")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--kill-cpu", type=int, default=60, metavar="S", help="stop a command at this (default 60)")
    parser.add_argument("--kill-mb", type=int, default=3000, metavar="MB", help="or at this (default 3000)")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    files = [file for file in FILES if not arguments.only or file.name in arguments.only]
    if arguments.make:
        return _make(files, arguments.make)
    commands = {name: words for name, words in COMMANDS.items() if not arguments.command or name in arguments.command}
    limits = Limits(cpu_s=arguments.kill_cpu, memory_bytes=arguments.kill_mb * 1_000_000)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = {file.name: _run(file, folder, commands, limits) for file in files}
        text = _table(files, commands, results, folder)
    print(text)
    if arguments.write:
        PAGE.write_text(INTRODUCTION + text, encoding="utf-8")
    over = sum(not _within(measured) for row in results.values() for measured in row.values())
    print(f"\n{over} of {sum(map(len, results.values()))} runs beyond the bounds", file=sys.stderr)
    return 1 if over else 0


def _make(files: Sequence[HostileFile], folder: Path) -> int:
    maker = Maker(SharedKey.load(folder / KEY_FILE).id)
    for file in files:
        path = _path(file, folder)
        path.unlink(missing_ok=True)
        file.write(maker, path)
        checked_size(path)
    return 0


def _path(file: HostileFile, folder: Path) -> Path:
    return folder / f"{file.name}.{file.suffix}"


def _run(file: HostileFile, folder: Path, commands: Mapping[str, Sequence[str]], limits: Limits) -> dict[str, Measured]:
    """Make one file and give it to every command."""
    if not (folder / KEY_FILE).exists():
        SharedKey.generate().save(folder / KEY_FILE)
    # In another process: what this one has held once would count as held by the commands that it starts.
    subprocess.run([sys.executable, __file__, "--make", str(folder), "--only", file.name], check=True)
    row = {}
    for name, words in commands.items():
        filled = [word.format(log=_path(file, folder).name, key=KEY_FILE) for word in words]
        row[name] = measure([sys.executable, *filled], limits, folder)
        print(f"... {file.name}: {name}: {_cell(row[name])} {row[name].said[:100]!r}", file=sys.stderr, flush=True)
    return row


def _within(measured: Measured) -> bool:
    return measured.typed and measured.cpu_s <= MAX_CPU_S and measured.peak_mb <= MAX_MB


def _cell(measured: Measured) -> str:
    text = f"{measured.cpu_s:.1f} s, {measured.peak_mb:.0f} MB, {measured.end}"
    return text if _within(measured) else f"**{text}**"


def _table(
    files: Sequence[HostileFile],
    commands: Mapping[str, Sequence[str]],
    results: Mapping[str, Mapping[str, Measured]],
    folder: Path,
) -> str:
    lines = [_machine(), "", "## What it costs", ""]
    lines += ["Processor time, peak memory, exit status.", ""]
    lines += [f"| file | {' | '.join(commands)} |", "|---" * (1 + len(commands)) + "|"]
    for file in files:
        cells = [_cell(results[file.name][name]) for name in commands]
        lines.append(f"| {file.name} | {' | '.join(cells)} |")
    first = next(iter(commands))
    lines += ["", f"## What they are, and what `{first}` says", ""]
    lines += ["| file | bytes | what it is | the first line |", "|---|---|---|---|"]
    for file in files:
        said = results[file.name][first].said.replace("|", "\\|").replace("`", "'")
        shown = f"{said[:140]} ..." if len(said) > 140 else said
        lines.append(f"| {file.name} | {checked_size(_path(file, folder)):,} | {file.about} | {shown} |")
    return "\n".join(lines) + "\n"


def _machine() -> str:
    """What it was measured on."""
    packages = []
    for name in ("cryptography", "pyarrow", "zstandard"):
        try:
            packages.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            packages.append(f"{name} not installed")
    return (
        f"Measured with Python {platform.python_version()}, {', '.join(packages)}, on {platform.system()} "
        f"{platform.machine()}, {_processor()}, {os.cpu_count()} cores."
    )


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown processor"
    named = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return named[0] if named else platform.machine()


if __name__ == "__main__":
    sys.exit(main())
