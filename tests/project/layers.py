"""Who may import whom: the one table, and the check that reads every import of a tree against it.

Imports count wherever they stand: at the top of a file, inside a function, for type checking only, or by name through
`import_module`. The front door (`agentmark/__init__.py`) is left out: it names where things live and imports on demand.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "agentmark"

# A room imports rooms of lower ranks only. So rooms of one rank never meet, directly or through others: `embed` and
# `verify` share what is below them. A gateway and a console will stand beside `adapters`, and meet in the store.
RANKS = (
    ("core", "version"),
    ("errors", "files", "text", "times"),
    ("record",),
    ("keys", "identity"),
    ("disclosure",),
    ("embed", "verify", "chain", "elicit"),
    ("log", "wire", "report"),
    ("batch", "store"),
    ("decide", "audit", "power"),
    ("policies", "testing", "adapters", "scale"),
    ("gateway",),
    ("demo",),
    ("cli",),
    ("__main__",),
)
# Leaves are imported by nobody, whatever their rank, but for the doors named here.
LEAVES = {"adapters", "testing", "scale", "gateway", "demo", "cli", "__main__"}
DOORS = {("cli", "demo"), ("cli", "gateway"), ("gateway", "testing"), ("__main__", "cli")}

# Inside a room: modules (or folders) import those of lower ranks, and those of their own line as far as no cycle forms.
INNER_RANKS = {
    "embed": (("session",), ("embedder",)),
    "disclosure": (("digest", "tenants"), ("basis", "document"), ("make", "check")),
    "chain": (("links", "findings"), ("checkpoint",), ("state",), ("session", "writer"), ("check",)),
    "verify": (
        ("work", "defaults"),
        ("readings", "reading_bytes", "packed"),
        ("search", "keyring", "prices"),
        ("intake", "candidates", "stranger"),
        ("state", "sorted_log", "verdict", "tamper", "arrivals"),
        ("correction", "weighing", "part_bytes"),
        ("roll",),
        ("judge", "followed"),
        ("verifier", "monitor", "pooling"),
        ("many",),
    ),
    # What writes a log never needs what reads one.
    "log": (
        ("sink", "append", "sync", "lines", "json_beginning", "sizes", "sqlite_file"),
        ("signer_file",),
        ("jsonl", "rotating", "sqlite", "otel", "parquet"),
        ("record_file",),
        ("read",),
    ),
    "store": (
        ("errors", "decision", "tenants", "schema", "database"),
        ("rows", "sqlite", "postgresql"),
        ("tables",),
        ("writing",),
        ("store",),
        ("open",),
    ),
    # Columns know nothing of where they come from.
    "batch": (
        ("arrays", "library"),
        ("laws", "scanning"),
        ("columns", "hashing"),
        ("copies", "joined", "read_f", "parquet", "from_lines"),
        ("read_r",),
        ("native",),
        ("reading",),
        ("chunks", "groups"),
    ),
    "audit": (
        ("engine", "stretches", "progress", "sessions", "shards", "spill", "work_dir", "workers", "results"),
        ("material", "chunks", "judged"),
        ("case", "column_chunks"),
        ("chunk_kinds", "sorted_parts", "repeat"),
        ("judging",),
        ("roll_case", "shard_reading"),
        ("bulk_report", "held"),
        ("bulk",),
    ),
    "decide": (
        ("forks",),
        ("decision", "forcing", "stats", "writing"),
        ("runs",),
        ("desk", "call"),
        ("driving",),
        ("turn",),
        ("decider",),
    ),
}
# Adapters know nothing of each other: each is one file on what they share.
SHARED_BY_ADAPTERS = {"adapters.side_calls", "adapters.streams"}

# Rooms whose `__init__` hands on names of the room. All others hold a docstring: importing one module of a room loads
# no other.
HANDING_ON = {"cli", "elicit", "policies", "report", "testing"}
# What imports by a name that this check cannot read. These load their own modules so, when a name is first used.
IMPORTS_BY_NAME = {"elicit", "report"}
BY_NAME = {"import_module", "__import__", "resolve_name", "run_module", "run_path", "exec", "eval"}


def violations(root: Path) -> list[str]:
    """What in the package at `root` crosses a line, in sentences; empty if nothing does."""
    graph = import_graph(root)
    found = _by_name(root) + _rooms_that_hand_on(graph)
    for module, imported in sorted(graph.items()):
        for target in sorted(imported):
            found += _crossing(module, target)
    return found + _reaches(graph) + _cycles(graph)


def _by_name(root: Path) -> list[str]:
    """Imports that only running the code would show: by a name that is put together, aliased or executed."""
    found = []
    for path in sorted(root.rglob("*.py")):
        module = _name(path, root)
        if module in IMPORTS_BY_NAME or not module:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and not _is_literal_import(node):
                called = ast.unparse(node.func)
                # A method called eval is a method; the built-in functions are called by their bare names.
                if called in BY_NAME or called.split(".")[-1] in BY_NAME - {"exec", "eval"}:
                    found.append(f"{module} imports by a name that nobody can check: {ast.unparse(node)[:60]}")
            elif isinstance(node, ast.ImportFrom):
                aliased = [alias.name for alias in node.names if alias.name in BY_NAME and alias.asname]
                found += [f"{module} imports {name} under another name" for name in aliased]
    return found


def _is_literal_import(node: ast.Call) -> bool:
    """`import_module("agentmark.x")`: the graph has it."""
    if ast.unparse(node.func) in ("exec", "eval"):
        return False
    return len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and not node.keywords


def _rooms_that_hand_on(graph: dict[str, set[str]]) -> list[str]:
    rooms = {module for module in graph if any(other.startswith(f"{module}.") for other in graph)}
    return [
        f"{room} loads {target} for whoever imports any module of it"
        for room in sorted(rooms - HANDING_ON)
        for target in sorted(graph[room])
    ]


def import_graph(root: Path) -> dict[str, set[str]]:
    """Which module imports which, as dotted names below the package; foreign packages left out, the lab kept."""
    files = {_name(path, root): path for path in root.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        if name:
            graph[name] = {target for target in _imports(path, name, set(files)) if target != name}
    return graph


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path, module: str, modules: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _known(alias.name, modules)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                is_package = path.stem == "__init__"
                above = f"{PACKAGE}.{module}".split(".")
                above = above[: len(above) - node.level + is_package]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                # A submodule if there is one of this name, else something inside the module.
                inner = list(_known(f"{base}.{alias.name}", modules))
                yield from inner or _known(base, modules)
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield from _known(argument.value, modules)


def _known(dotted: str, modules: set[str]) -> Iterator[str]:
    if dotted.split(".", maxsplit=1)[0] == f"{PACKAGE}_lab":
        yield f"{PACKAGE}_lab"
    elif dotted == PACKAGE:
        yield "(front door)"
    elif dotted.startswith(f"{PACKAGE}.") and dotted.removeprefix(f"{PACKAGE}.") in modules:
        yield dotted.removeprefix(f"{PACKAGE}.")


def _rank(name: str, ranks: tuple[tuple[str, ...], ...]) -> int | None:
    return next((rank for rank, names in enumerate(ranks) if name in names), None)


def _crossing(module: str, target: str) -> list[str]:
    if target == "(front door)":
        return [f"{module} imports the front door: import from the file where a name lives"]
    room, other = module.split(".", maxsplit=1)[0], target.split(".", maxsplit=1)[0]
    if room == other:
        return _inner_crossing(room, module, target)
    rank, other_rank = _rank(room, RANKS), _rank(other, RANKS)
    if rank is None or other_rank is None:
        return [f"{module} imports {target}: {room if rank is None else other} has no rank in the table"]
    if other_rank >= rank:
        return [f"{module} imports {target}: {other} is not below {room}"]
    if other in LEAVES and (room, other) not in DOORS:
        return [f"{module} imports {target}: {other} is a leaf"]
    return []


def _inner_crossing(room: str, module: str, target: str) -> list[str]:
    if room == "adapters" and target not in SHARED_BY_ADAPTERS:
        return [f"{module} imports {target}: adapters know nothing of each other"]
    ranks = INNER_RANKS.get(room)
    if ranks is None or "." not in module or "." not in target:
        return []
    part, other = module.split(".")[1], target.split(".")[1]
    rank, other_rank = _rank(part, ranks), _rank(other, ranks)
    if rank is None or other_rank is None:
        return [f"{module} imports {target}: {part if rank is None else other} has no rank inside {room}"]
    return [f"{module} imports {target}: inside {room}, {other} is above {part}"] if other_rank > rank else []


def _reaches(graph: dict[str, set[str]]) -> list[str]:
    """The pairs that must never meet, followed through every module between them."""
    found = []
    for start, end in (("embed", "verify"), ("verify", "embed")):
        for module in sorted(graph):
            if module.split(".")[0] == start:
                path = _path_to(module, end, graph)
                if path is not None:
                    found.append(f"{start} reaches {end}: {' -> '.join(path)}")
    return found


def _path_to(module: str, room: str, graph: dict[str, set[str]]) -> list[str] | None:
    paths, seen = [[module]], {module}
    for path in paths:
        for target in sorted(graph.get(path[-1], ())):
            if target.split(".")[0] == room:
                return [*path, target]
            if target not in seen:
                seen.add(target)
                paths.append([*path, target])
    return None


def _cycles(graph: dict[str, set[str]]) -> list[str]:
    """A circle of modules for each module that reaches itself; each circle once."""
    found: dict[frozenset[str], str] = {}
    for module in sorted(graph):
        paths, seen = [[module]], {module}
        for path in paths:
            for target in sorted(graph.get(path[-1], ())):
                if target == module:
                    found.setdefault(frozenset(path), f"cycle: {' -> '.join([*path, module])}")
                elif target not in seen:
                    seen.add(target)
                    paths.append([*path, target])
    return list(found.values())
