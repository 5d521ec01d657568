"""Which code played: the digest of everything that an episode is made of.

A log or a success rate belongs to the code that made it. What counts is found by following imports, from the modules
that are named down to those that they need, in the library and in the lab. Whatever only sums up, draws or prints is
not among them, so that a new table does not make old episodes stale.
"""

import ast
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import agentmark
import agentmark_lab

_PACKAGES = {"agentmark": agentmark, "agentmark_lab": agentmark_lab}


def code_digest(modules: Iterable[str]) -> str:
    """Of the sources of these modules and of all that they import, as 64 hexadecimal digits."""
    digest = sha256()
    for name, path in sorted(code_behind(modules).items()):
        digest.update(f"{name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def code_behind(modules: Iterable[str]) -> dict[str, Path]:
    """These modules and what they import, anywhere in their sources, by name."""
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if path is None or name in found:
            continue
        found[name] = path
        waiting += _imported(path)
    return found


def _imported(path: Path) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *[f"{node.module}.{alias.name}" for alias in node.names]]
    return tuple(names)


def _source(name: str) -> Path | None:
    """The file of a module of the library or the lab; None for any other, and for what is no module."""
    package, *rest = name.split(".")
    if package not in _PACKAGES:
        return None
    place = Path(str(_PACKAGES[package].__file__)).parent.joinpath(*rest)
    candidates = (place / "__init__.py", place.with_suffix(".py"))
    return next((path for path in candidates if path.is_file()), None)
