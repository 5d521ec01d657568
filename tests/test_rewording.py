"""Lists before and after rewording: what is the same, and that the log which is read has the lists after it."""

from random import Random

from agentmark.core.distribution import BehaviorDistribution
from agentmark.embed import Embedder
from agentmark.lab.rewording import Step, reworded_log
from agentmark.lab.rewriting import Tally, identify, kl_bits, match_of
from agentmark.lab.samples import dirichlet, named, random_key
from agentmark.verify import Verifier


def drawn(rng: Random, size: int = 8) -> BehaviorDistribution:
    return BehaviorDistribution.quantise(named(dirichlet(rng, 0.5, size)))


def test_nothing_changes_if_the_lists_are_the_same() -> None:
    rng = Random(1)
    pairs = [(one, one) for one in [drawn(rng) for _ in range(50)]]
    match = match_of(pairs, random_key(rng), rng)
    assert (match.behavior_f, match.behavior_r, match.bits_f, match.agree_f, match.divergence) == (1, 1, 1, 1, 0)


def test_lists_that_have_nothing_to_do_with_each_other_match_by_chance() -> None:
    rng = Random(2)
    pairs = [(drawn(rng), drawn(rng)) for _ in range(2000)]
    match = match_of(pairs, random_key(rng), rng)
    # H0: the payload satisfies what is read as often as any other would; 2,000 steps, within four standard errors.
    assert abs(match.agree_f - match.chance_f) < 4 * (0.25 / 1000) ** 0.5
    assert match.behavior_r < 0.5
    assert match.divergence > 1


def test_divergence_is_in_bits() -> None:
    half = BehaviorDistribution.quantise({"a": 1, "b": 1})
    quarter = BehaviorDistribution.quantise({"a": 1, "b": 3})
    assert abs(kl_bits(half, quarter) - 0.2075) < 1e-4
    assert kl_bits(half, half) == 0


def test_a_log_is_marked_with_the_first_list_and_read_with_the_second() -> None:
    rng = Random(3)
    key, payload = random_key(rng), 0xA5
    pairs = [(one, drawn(rng) if i % 5 == 0 else one) for i, one in enumerate([drawn(rng) for _ in range(100)])]
    log = reworded_log(pairs, Embedder(key, payload, payload_len=8, scheme="R"), rng, steps=120)
    assert {record.distribution for record in log} <= {after for _, after in pairs}
    tallies = {10: Tally(), 120: Tally()}
    identify(log, payload, Verifier(key, payload_len=8), 0.3, tallies)
    # A fifth of the lists is another's: the identity is still named.
    assert (tallies[120].identified, tallies[120].accepted, tallies[120].trials) == (1, 1, 1)
    assert tallies[10].trials == 1


def test_names_of_things_that_are_left() -> None:
    rng = Random(4)
    pair = (drawn(rng), drawn(rng))
    assert Step(pair, "You see a bed 1, a desk 2.", "There is a Desk 2 and a lamp 1.").names_kept == 0.5
    assert Step(pair, "Nothing happens.", "Nothing.").names_kept is None
