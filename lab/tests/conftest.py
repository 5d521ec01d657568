"""What several tests of the lab stand on."""

from pathlib import Path

import pytest
from agentmark_lab.envs import base
from agentmark_lab.kit.options import Options


@pytest.fixture
def corridors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in is an environment like any other."""
    monkeypatch.setitem(base.ENVIRONMENTS, "corridors", "corridors:Corridors")


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where environments keep what is slow to make, for all tests together."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def quick(tmp_path: Path) -> Options:
    """A quick run in this process, in a folder of its own."""
    return Options(quick=True, work=tmp_path)
