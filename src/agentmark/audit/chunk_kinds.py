"""Which kinds of chunks there are, and which of them can be had here."""

from importlib.util import find_spec

from agentmark.audit.chunks import FAST, PLAIN, ChunkKind, PlainChunks
from agentmark.errors import MissingExtraError, SettingError

# Packages of the extra `fast`.
NEEDED = ("msgspec", "numpy")


def default_engine() -> str:
    """Columns, where they can be had."""
    return FAST if all(find_spec(package) is not None for package in NEEDED) else PLAIN


def chunk_kind(engine: str) -> ChunkKind:
    """The kind of this name."""
    if engine == PLAIN:
        return PlainChunks()
    if engine != FAST:
        raise SettingError("engine", f"{engine!r} is neither {PLAIN} nor {FAST}")
    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingExtraError(package, "fast")
    from agentmark.audit.column_chunks import ColumnChunks

    return ColumnChunks()
