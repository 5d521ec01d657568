"""Keys go to a process that is started, and nowhere else."""

import pickle
from multiprocessing import get_context

import pytest

from agentmark import SharedKey
from agentmark.keys.handover import HandedKeys

KEY = SharedKey(bytes(range(100, 132)))


def tell(handed: HandedKeys, said: object) -> None:
    said.put([key.id for key in handed.keys])  # type: ignore[attr-defined]


def test_keys_reach_a_process_that_is_started() -> None:
    context = get_context("spawn")
    said = context.SimpleQueue()
    process = context.Process(target=tell, args=(HandedKeys([KEY]), said))
    process.start()
    assert said.get() == [KEY.id]
    process.join()


def test_they_are_pickled_for_nothing_else() -> None:
    with pytest.raises(RuntimeError, match="inheritance"):
        pickle.dumps(HandedKeys([KEY]))
