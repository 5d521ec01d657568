"""Which database a path or URL names."""

from pathlib import Path

import pytest

from agentmark import SettingError
from agentmark.store.open import database_at, open_store
from agentmark.store.sqlite import SqliteDatabase


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("store.db", "store.db"),
        ("/var/lib/store.db", "/var/lib/store.db"),
        (Path("store.db"), "store.db"),
        ("sqlite:///store.db", "store.db"),
        ("sqlite:////var/lib/a%20store.db", "/var/lib/a store.db"),
    ],
)
def test_files(url: str | Path, path: str) -> None:
    database = database_at(url)
    assert isinstance(database, SqliteDatabase)
    assert database.path == Path(path)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "is not the name of a file"),
        (":memory:", "is not the name of a file"),
        ("sqlite:///", "is not the name of a file"),
        ("sqlite://host/store.db", "is no file"),
        ("mysql://user:secret@host/db", "mysql:// is no database of ours"),
    ],
)
def test_what_names_none(url: str, fault: str) -> None:
    with pytest.raises(SettingError) as caught:
        open_store(url)
    assert fault in str(caught.value)
    assert "secret" not in str(caught.value)


def test_postgresql_is_named_without_its_user_and_password() -> None:
    pytest.importorskip("psycopg")
    url = "postgresql://me:secret@db.internal:5433/agents?options=-csearch_path%3Dx"
    assert open_store(url).name == "postgresql://db.internal:5433/agents"
    assert open_store("postgresql:///agents?host=/run/postgresql").name == "postgresql:///agents"
    with pytest.raises(SettingError, match="is not a URL of PostgreSQL") as caught:
        open_store("postgresql://me:secret@host/db?no_such_option=1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"patience_s": 0.0}, {"max_waiting": 0}])
def test_settings_that_cannot_be_meant(settings: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="is not above zero"):
        open_store("store.db", **settings)
