"""Every attack of the list is made, and what it takes is counted."""

from agentmark_lab.experiments.attacks import attacks


def test_the_oracle_is_asked_and_counted():
    outcome = attacks.carry_out(attacks.Job(attacks.ORACLE, "F", 1, 1))
    assert outcome.named == 1
    assert 10 < outcome.queries[0] < 200
    # Ten records of three bits pay for the threshold; none of them was made with the key.
    assert outcome.forged[0] >= 10


def test_every_attack_of_the_list_is_made():
    names = " ".join(attack.name for attack in attacks.ATTACKS)
    for word in (
        "context edits", "deletion", "truncation", "renumbering", "insertion", "dilution", "splice", "reordering",
        "duplication", "repeated contexts", "replay", "payload length", "key ids", "weights", "names",
    ):  # fmt: skip
        assert word in names
