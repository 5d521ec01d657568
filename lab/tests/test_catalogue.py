"""The catalogue: an experiment is found under the name that users know."""

import pytest
from agentmark_lab.catalogue import EXPERIMENTS, load


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_loaded_by_its_name(name: str) -> None:
    experiment = load(name)
    assert name == experiment.NAME
    assert experiment.TITLE


def test_another_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        load("nonsense")
