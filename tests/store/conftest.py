"""Databases for the tests: a file, and a schema of a server that is started for them alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import MISSING, Cluster, programs


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[Cluster]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: make test-gateway")
    if programs() is None:
        pytest.skip(MISSING)
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
def cluster(running_cluster: Cluster) -> Cluster:
    """A server without a store. Whoever stopped it may leave it so."""
    if not running_cluster.is_running:
        running_cluster.start()
    running_cluster.execute("DROP SCHEMA IF EXISTS agentmark CASCADE")
    return running_cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    found: Cluster = request.getfixturevalue("cluster")
    return found.url
