"""Opening a store by its URL."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from agentmark.errors import SettingError
from agentmark.store.database import Database
from agentmark.store.sqlite import SqliteDatabase
from agentmark.store.store import Store

PATIENCE_S = 5.0
MAX_WAITING = 4096
TENANT_CACHE_S = 5.0
REMEMBER_S = 24 * 3600.0


def open_store(
    url: str | os.PathLike[str],
    *,
    clock: Callable[[], float] = time.time,
    patience_s: float = PATIENCE_S,
    max_waiting: int = MAX_WAITING,
    tenant_cache_s: float = TENANT_CACHE_S,
    remember_s: float = REMEMBER_S,
) -> Store:
    """The store at a path or a URL: "store.db", "sqlite:///path", "postgresql://user@host/database".

    Nothing is opened before `start`. `patience_s` is how long a call waits for the database before it fails;
    `max_waiting`, how many calls may wait at once; `tenant_cache_s`, how long an API key is believed without a look;
    `remember_s`, how long decisions are remembered (records stay until they are expired).
    """
    if patience_s <= 0:
        raise SettingError("patience_s", f"{patience_s} is not above zero")
    if max_waiting < 1:
        raise SettingError("max_waiting", f"{max_waiting} is not above zero")
    return Store(
        database_at(url),
        clock=clock,
        patience_s=patience_s,
        max_waiting=max_waiting,
        tenant_cache_s=tenant_cache_s,
        remember_s=remember_s,
    )


def database_at(url: str | os.PathLike[str]) -> Database:
    """The database that a path or URL names. Errors never quote a URL: there may be a password in it."""
    text = os.fspath(url)
    kind, separator, rest = text.partition("://")
    if not separator:
        return _file(text)
    if kind == "sqlite":
        if not rest.startswith("/"):
            raise SettingError(
                "store", "sqlite://HOST is no file: it is sqlite:///relative.db or sqlite:////absolute.db"
            )
        return _file(unquote(rest[1:]))
    if is_postgresql(text):
        from agentmark.store.postgresql import PostgresqlDatabase

        return PostgresqlDatabase(text)
    raise SettingError("store", f"{kind}:// is no database of ours: a path, sqlite:/// or postgresql://")


def is_postgresql(text: str) -> bool:
    """Whether this names a database server."""
    return text.startswith(("postgresql://", "postgres://"))


def _file(path: str) -> SqliteDatabase:
    if not path or "\0" in path or path == ":memory:":
        raise SettingError("store", "is not the name of a file")
    return SqliteDatabase(Path(path))
