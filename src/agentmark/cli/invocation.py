"""How this program was started, so that a command it prints can be pasted into the same shell."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

NAME = "agentmark"


def own_command(script: str | None = None, words: Sequence[str] | None = None) -> str:
    """What to type before a subcommand, quoted for a shell.

    `script` and `words` are what Python was given (`sys.argv[0]`, `sys.orig_argv`). A script that the shell finds by
    its name needs no path; another is called as it was; `python -m agentmark` is repeated with its interpreter.
    """
    script = sys.argv[0] if script is None else script
    words = sys.orig_argv if words is None else words
    if Path(script).stem == NAME:
        return NAME if _is_found_by_name(script) else shlex.quote(script)
    for i in range(1, len(words) - 1):
        if words[i] == "-m" and words[i + 1] == NAME:
            return shlex.join(words[: i + 2])
    # Called from other code, which may have changed what it was started with.
    return shlex.join([sys.executable, "-m", NAME])


def _is_found_by_name(script: str) -> bool:
    found = shutil.which(NAME)
    try:
        return found is not None and Path(found).samefile(script)
    except OSError:
        return False
