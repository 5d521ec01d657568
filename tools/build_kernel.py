"""Build the native library of bulk audits (src/agentmark/batch/*.c) with the C compiler that is there.

    python tools/build_kernel.py [TARGET]

By default it is built where the package looks for it, so that a clone has it; an installation builds its own
(hatch_build.py). Nothing depends on it: without a compiler, or with AGENTMARK_NO_NATIVE=1, NumPy does the same work.
"""

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "src/agentmark/batch"
SOURCES = ("_kernel.c", "_scanner.c")
IN_PLACE = FOLDER / "_kernel.so"
# No instruction set beyond the machine's oldest, since a wheel may travel. A product and a sum are rounded one by one,
# as Python does.
FLAGS = ("-O3", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")
TIMEOUT_S = 120


def build_kernel(target: Path) -> str | None:
    """Build it into this file; what stood in the way, or None."""
    if os.environ.get("AGENTMARK_NO_NATIVE", "") not in ("", "0"):
        return "AGENTMARK_NO_NATIVE is set"
    compiler = _compiler()
    if compiler is None:
        return "there is no C compiler"
    # Beside the target and then in its place: a process that has the old one loaded keeps it.
    built = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        command = [*compiler, *FLAGS, "-o", str(built), *[str(FOLDER / name) for name in SOURCES], "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            return f"{shlex.join(command)} failed: {done.stderr.strip()[:1000]}"
        # Loaded once: a library for another machine would be no use to anyone here.
        ctypes.CDLL(str(built))
        built.replace(target)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{error}"[:1000]
    finally:
        built.unlink(missing_ok=True)
    return None


def wheel_tag() -> str:
    """Of a wheel that holds the kernel: any Python, this kind of machine."""
    return f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _compiler() -> list[str] | None:
    for command in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"):
        words = shlex.split(command or "")
        if words and shutil.which(words[0]):
            return words
    return None


if __name__ == "__main__":
    fault = build_kernel(Path(sys.argv[1]) if len(sys.argv) > 1 else IN_PLACE)
    print(f"not built: {fault}" if fault else "built")
    sys.exit(fault is not None)
