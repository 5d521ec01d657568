"""An errand ends the same whatever order it is done in, and is done only when it is."""

from itertools import permutations

import pytest

from agentmark.testing import Errand
from agentmark.testing.refusing.errand import ITEMS, order_in


def steps(errand: Errand) -> list[tuple[str, dict[str, str]]]:
    adds: list[tuple[str, dict[str, str]]] = [("add", {"item": item}) for item in errand.order.items]
    return [*adds, ("deliver_to", {"city": errand.order.city})]


def test_every_order_ends_alike() -> None:
    answers = set()
    for order in permutations(steps(Errand(4))):
        errand = Errand(4)
        for name, arguments in order:
            assert not errand.done
            errand.call("price", {"item": errand.order.items[0]})
            assert "Not yet" in errand.call("ship", {})
            errand.call(name, arguments)
        assert errand.answer in errand.call("ship", {})
        assert errand.finished(f"All done. {errand.answer}")
        answers.add(errand.answer)
    assert len(answers) == 1


def test_it_is_not_finished_without_the_answer_nor_the_answer_without_the_deed() -> None:
    errand = Errand(4)
    assert not errand.finished(errand.answer)
    for name, arguments in steps(errand):
        errand.call(name, arguments)
    errand.call("ship", {})
    assert errand.done
    assert not errand.finished("Done.")
    assert not errand.finished(None)


def test_the_wrong_things_are_not_done() -> None:
    errand = Errand(4)
    for name, arguments in steps(errand):
        errand.call(name, arguments)
    other = next(item for item in ITEMS if item not in errand.order.items)
    errand.call("add", {"item": other})
    errand.call("ship", {})
    assert not errand.done


def test_what_cannot_be_called_is_told() -> None:
    errand = Errand()
    assert "no tool" in errand.call("fly", {})
    assert "Error" in errand.call("add", {"thing": "lamp"})
    assert "no sofa" in errand.call("add", {"item": "sofa"})
    assert "Nothing found" in errand.call("search", {"query": "sofa"})
    assert errand.basket == set()


def test_errands_differ_by_seed_and_are_read_from_their_text() -> None:
    assert len({Errand(seed).task for seed in range(10)}) > 5
    assert Errand(3).task == Errand(3).task
    for seed in range(10):
        assert order_in(f"Hello. {Errand(seed, items=4).task}") == Errand(seed, items=4).order
    assert order_in("Buy me a drink.") is None


@pytest.mark.parametrize("tool", Errand().schemas, ids=lambda tool: tool["name"])
def test_the_schemas_fit_the_functions(tool: dict[str, object]) -> None:
    errand = Errand()
    parameters = tool["parameters"]
    assert isinstance(parameters, dict)
    assert tool["description"]
    for names in (parameters["required"], list(parameters["properties"])):
        assert "Error" not in errand.call(str(tool["name"]), {name: "lamp" for name in names})
