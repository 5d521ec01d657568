"""The real situations, where the data is."""

import pytest
from agentmark_lab.kit.authors_runs import real_situations
from agentmark_lab.kit.data import MissingError


def test_the_real_situations_are_thirty_from_three_sources() -> None:
    try:
        situations = real_situations()
    except MissingError as missing:
        pytest.skip(str(missing))
    assert len(situations) == len({one.name for one in situations}) == 30
    assert {one.source for one in situations} == {"ToolBench queries", "ToolBench steps", "ALFWorld steps"}
    assert sum(bool(one.relevant) for one in situations) == 18
    for one in situations:
        assert 2 <= len(one.situation.candidates) <= 25
        assert one.relevant <= set(one.situation.names)
