"""SynthID-Text: the reader of g-values against transformers' own functions, and the tournament.

What needs torch and transformers is skipped without them (`make lab-oasis` installs them).
"""

from random import Random
from typing import Any

import pytest
from agentmark_lab.peers.synthid_text import (
    CONTEXT_HISTORY,
    NGRAM_LEN,
    TABLE_SEED,
    TABLE_SIZE,
    GreenList,
    GValues,
    Reader,
    SynthId,
    TextReading,
    read_text,
    sampling_table,
    tournament,
)

pytestmark = pytest.mark.filterwarnings("ignore")


VOCABULARY = 49_152
LAYERS, WRONG_KEYS = 30, 99


def random_table(seed: int = 0) -> list[int]:
    rng = Random(seed)
    return [rng.getrandbits(1) for _ in range(TABLE_SIZE)]


def random_keys(rng: Random) -> list[int]:
    return [rng.getrandbits(31) for _ in range(LAYERS)]


def chosen_text(reader: Reader, keys: list[int], rng: Random, length: int, candidates: int) -> list[int]:
    """Every token is the best of some candidates under the key: the plainest watermark of this family."""
    tokens: list[int] = []
    for _ in range(length):
        offered = [rng.randrange(VOCABULARY) for _ in range(candidates)]
        padded = [0] * NGRAM_LEN + tokens
        tokens.append(max(offered, key=lambda token: reader.read([*padded, token][-NGRAM_LEN:], keys).heads))
    return tokens


def test_a_text_under_its_key_and_under_wrong_ones():
    rng = Random(1)
    reader, keys = Reader(random_table()), random_keys(rng)
    text = chosen_text(reader, keys, rng, 150, 4)
    reading = read_text(reader, text, keys, [random_keys(rng) for _ in range(WRONG_KEYS)])
    right, wrong = reading.right, reading.wrong
    assert right.flips == (150 - NGRAM_LEN + 1) * LAYERS
    assert right.mean > 0.55
    assert right.z > 6
    # 99 x 4,380 fair coins: the mean is one half within five standard errors, and no wrong key comes close.
    assert sum(wrong) / WRONG_KEYS == pytest.approx(0.5, abs=0.004)
    assert max(wrong) < right.mean
    assert reading.p_value == 1 / (WRONG_KEYS + 1)
    stranger = reader.read([rng.randrange(VOCABULARY) for _ in range(150)], keys)
    assert stranger.mean == pytest.approx(0.5, abs=0.04)


def test_the_p_value_counts_the_right_key_in():
    means = [0.5] * 98 + [0.6]
    assert TextReading(9, GValues(61, 100), means).p_value == pytest.approx(0.01)
    assert TextReading(9, GValues(60, 100), means).p_value == pytest.approx(0.02)
    assert TextReading(9, GValues(49, 100), means).p_value == 1


def test_a_text_that_does_not_know_the_key_is_detected_no_more_often_than_the_level():
    """H0: the text does not depend on the key. 400 keys drawn like 19 wrong ones: p at most 0.05 in 20 on average, and
    in 42 or more with a chance below 1e-5."""
    rng = Random(4)
    reader = Reader(random_table())
    text = [rng.randrange(VOCABULARY) for _ in range(60)]
    many = [[random_keys(rng) for _ in range(20)] for _ in range(400)]
    found = sum([read_text(reader, text, right, wrong).p_value <= 0.05 for right, *wrong in many])
    assert found < 42


def test_many_keys_at_once_read_as_one_by_one():
    rng = Random(5)
    reader = Reader(random_table())
    hashes = reader.hashes([rng.randrange(VOCABULARY) for _ in range(40)])
    many = [random_keys(rng) for _ in range(7)]
    assert reader.means(hashes, many) == pytest.approx([reader.flips(hashes, keys).mean for keys in many])


def test_a_repeated_context_counts_once():
    reader = Reader(random_table())
    phrase = [11, 12, 13, 14, 15]
    assert len(reader.hashes(phrase)) == 1
    # The same context twice, with another token after it: only its first use counts.
    once = reader.hashes([*phrase, 99, 98, 97, 96])
    again = reader.hashes([*phrase, 99, 98, 97, 96, 11, 12, 13, 14, 16])
    assert again[: len(once)] == once
    assert len(again) == len(once) + 4
    assert reader.hashes([1, 2]) == []


def processor(keys: list[int]) -> Any:
    pytest.importorskip("torch", reason="needs torch: make lab-oasis")
    transformers = pytest.importorskip("transformers", reason="needs transformers: make lab-oasis")
    return transformers.SynthIDTextWatermarkLogitsProcessor(
        ngram_len=NGRAM_LEN,
        keys=keys,
        sampling_table_size=TABLE_SIZE,
        sampling_table_seed=TABLE_SEED,
        context_history_size=CONTEXT_HISTORY,
        device=pytest.importorskip("torch").device("cpu"),
    )


@pytest.mark.parametrize("vocabulary", [VOCABULARY, 3])
def test_g_values_are_those_of_transformers(vocabulary):
    rng = Random(vocabulary)
    keys = random_keys(rng)
    theirs = processor(keys)
    torch = pytest.importorskip("torch")
    # A vocabulary of three repeats contexts all the time.
    tokens = [rng.randrange(vocabulary) for _ in range(200)]
    ids = torch.tensor([tokens])
    kept = theirs.compute_g_values(ids)[0][theirs.compute_context_repetition_mask(ids)[0]]
    ours = Reader(sampling_table()).read(tokens, keys)
    assert (ours.heads, ours.flips) == (int(kept.sum()), kept.numel())


def test_on_the_whole_vocabulary_with_two_leaves_the_tournament_is_that_of_transformers():
    rng = Random(2)
    keys = random_keys(rng)
    theirs = processor(keys)
    ours = tournament(SynthId(tuple(keys), 2), top_k=500)
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    ids = torch.randint(0, 500, (2, 3))
    for _ in range(8):
        scores = torch.randn(2, 500)
        assert torch.allclose(torch.softmax(ours(ids, scores), 1), torch.softmax(theirs(ids, scores), 1), atol=1e-7)
        ids = torch.concat([ids, torch.randint(0, 500, (2, 1))], dim=1)


def test_tokens_below_the_top_are_never_drawn_and_keep_their_own_g_values():
    pytest.importorskip("torch", reason="needs torch: make lab-oasis")
    pytest.importorskip("transformers", reason="needs transformers: make lab-oasis")
    import torch

    keys = random_keys(Random(3))
    theirs, ours = processor(keys), tournament(SynthId(tuple(keys), 2), top_k=20)
    scores = torch.randn(1, 500)
    kept = torch.topk(scores, 20).indices[0]
    cut = torch.full_like(scores, -torch.inf)
    cut[0, kept] = scores[0, kept]
    ids = torch.tensor([[1, 2, 3]])
    drawn = torch.softmax(ours(ids, scores), 1)
    assert int((drawn > 0).sum()) <= 20
    assert torch.allclose(drawn, torch.softmax(theirs(ids, cut), 1), atol=1e-6)


def test_four_leaves_are_a_tournament_of_four():
    """Every outcome of four independent draws, weighed: those with g = 1 win over those without, then at random."""
    pytest.importorskip("torch", reason="needs torch: make lab-oasis")
    pytest.importorskip("transformers", reason="needs transformers: make lab-oasis")
    import itertools

    import torch

    probs, g = [0.4, 0.3, 0.2, 0.1], [0, 1, 0, 1]
    expected = [0.0] * 4
    for draw in itertools.product(range(4), repeat=4):
        weight = probs[draw[0]] * probs[draw[1]] * probs[draw[2]] * probs[draw[3]]
        best = [token for token in draw if g[token]] or list(draw)
        for token in best:
            expected[token] += weight / len(best)
    one = tournament(SynthId((5,), 4))
    found = one.update_scores(torch.log(torch.tensor([probs])), torch.tensor([[[flip] for flip in g]]))
    assert torch.exp(found)[0].tolist() == pytest.approx(expected, abs=1e-6)


def mean_of_tournaments(leaves: int, probs: list[float], rounds: int) -> list[float]:
    """What a tournament of one layer makes of a distribution, as a mean over coin flips for the tokens."""
    torch = pytest.importorskip("torch", reason="needs torch: make lab-oasis")
    pytest.importorskip("transformers", reason="needs transformers: make lab-oasis")
    torch.manual_seed(leaves)
    one = tournament(SynthId((5,), leaves))
    scores = torch.log(torch.tensor([probs])).expand(rounds, -1)
    flips = torch.randint(0, 2, (rounds, len(probs), 1))
    return torch.exp(one.update_scores(scores, flips)).mean(dim=0).tolist()


def test_two_leaves_preserve_a_distribution_in_the_mean_over_keys_and_four_do_not():
    """H0: the mean over coin flips is the distribution. 20,000 rounds: standard errors below 0.002."""
    probs = [0.7, 0.2, 0.1]
    assert mean_of_tournaments(2, probs, 20_000) == pytest.approx(probs, abs=0.01)
    flat = mean_of_tournaments(4, probs, 20_000)
    assert flat[0] < 0.65
    assert flat[2] > 0.12


def test_a_green_list_favours_half_of_all_tokens_by_its_bias():
    torch = pytest.importorskip("torch", reason="needs torch: make lab-oasis")
    pytest.importorskip("transformers", reason="needs transformers: make lab-oasis")
    biased = tournament(GreenList(7, 2.0), top_k=500)
    scores = torch.zeros(1, 500)
    gains = biased(torch.tensor([[1, 2, 3]]), scores)[0].tolist()
    assert {*gains} == {0.0, 2.0}
    # 500 fair coins: within five standard errors.
    assert 194 < gains.count(2.0) < 306
