"""The persona policy, the statistics of the social experiment, and its judge: all that needs no simulation."""

from collections import Counter
from math import log2
from random import Random

import pytest
from agentmark_lab.envs.oasis import Act, Trajectory
from agentmark_lab.envs.oasis_personas import REDDIT_LIKE, TWITTER_LIKE, Comment, Persona, Post, View, touches, weights
from agentmark_lab.experiments.social.oasis import jensen_shannon, permutation_test, total_variation, transcript
from agentmark_lab.kit.model_judge import DIMENSIONS, Judge, judge_from_environment
from scipy.spatial.distance import jensenshannon

from agentmark.elicit.chat import ChatRequest, FunctionChat
from agentmark.elicit.endpoint import HttpChat
from agentmark.errors import SettingError

GEEK = Persona("Geek", "geek", "Posts benchmarks.", "You love silicon.", ("create_post", "quote_post"))
DULL = Post(1, 7, "Nice day.")
CHIPS = Post(2, 8, "New silicon, new benchmarks!", (Comment(5, 9),))


def shares(view: View, base: dict[str, float] = TWITTER_LIKE) -> dict[str, float]:
    found = weights(GEEK, view, base)
    return {name: weight / sum(found.values()) for name, weight in found.items()}


@pytest.mark.parametrize(("base", "size"), [(TWITTER_LIKE, 6), (REDDIT_LIKE, 13)])
def test_every_action_of_the_platform_has_a_positive_weight(base, size):
    found = shares(View((DULL, CHIPS)), base)
    assert list(found) == list(base)
    assert len(found) == size
    assert min(found.values()) > 0
    # Near the list in the paper's prompt, which has 1.99 bits.
    assert 1.5 < -sum([p * log2(p) for p in found.values()]) < 2.8


def test_the_list_depends_on_persona_feed_and_memory():
    plain = shares(View((DULL,)))
    stranger = weights(Persona("X", "x", "", "", ()), View((DULL,)), TWITTER_LIKE)
    assert plain["create_post"] > stranger["create_post"] / sum(stranger.values())
    assert touches(GEEK, CHIPS)
    assert not touches(GEEK, DULL)
    assert shares(View((CHIPS,)))["like_post"] > plain["like_post"]
    assert shares(View((DULL,), ("quote_post",) * 3))["quote_post"] < plain["quote_post"]
    # Only the last three count.
    forgotten = View((DULL,), ("quote_post", "repost", "repost", "repost"))
    assert shares(forgotten)["quote_post"] > plain["quote_post"]


def test_with_nothing_to_see_little_is_done_on_posts():
    empty = shares(View(()), REDDIT_LIKE)
    assert empty["like_post"] + empty["create_comment"] + empty["like_comment"] < 0.01
    assert (
        shares(View((DULL,)), REDDIT_LIKE)["like_comment"] < 0.01 < shares(View((CHIPS,)), REDDIT_LIKE)["like_comment"]
    )


def test_distances():
    one, other = Counter(a=3, b=1), Counter(a=1, c=3)
    assert total_variation(one, other) == pytest.approx(0.75)
    assert jensen_shannon(one, other) == pytest.approx(jensenshannon([3, 1, 0], [1, 0, 3], base=2) ** 2)
    assert total_variation(one, one) == jensen_shannon(one, one) == 0


def acts(rng: Random, likely: str, refused: float) -> list[Act]:
    return [Act(rng.choice([likely, "x", "y"]), {}, "no" if rng.random() < refused else None) for _ in range(10)]


def test_the_permutation_test_sees_a_difference_and_only_then():
    rng = Random(1)
    same = permutation_test([(acts(rng, "x", 0.1), acts(rng, "x", 0.1)) for _ in range(30)], 400, rng)
    assert same.p_variation > 0.05
    assert same.variation == pytest.approx(same.variation_by_chance, abs=0.1)
    other = permutation_test([(acts(rng, "x", 0.5), acts(rng, "z", 0.1)) for _ in range(30)], 400, rng)
    assert other.p_variation == other.p_divergence == other.p_refused == pytest.approx(1 / 401)
    assert other.refused[0] > other.refused[1]


def test_the_judge_scores_five_dimensions_or_nothing():
    asked: list[ChatRequest] = []
    replies = iter(
        [
            'Here: {"coherence": 7, "memory accuracy": 8, "character stability": 9, '
            '"social norms and common sense": 6.5, "language diversity": 3}',
            '{"coherence": 7}',
            '{"coherence": 70, "memory accuracy": 8, "character stability": 9, '
            '"social norms and common sense": 6, "language diversity": 3}',
            "no",
        ]
    )

    def complete(request: ChatRequest) -> str:
        asked.append(request)
        return next(replies)

    judge = Judge(FunctionChat("judge", complete=complete))
    told = transcript(Trajectory("Geek", [], [Act("like_post", {"post_id": 3}, "Like record already exists.")]))
    scores = judge.scores(GEEK.profile, told)
    assert scores == dict(zip(DIMENSIONS, [7, 8, 9, 6.5, 3], strict=True))
    assert "like_post(post_id=3) (refused: Like record already exists.)" in str(asked[0].messages)
    assert [judge.scores("", "") for _ in range(3)] == [None, None, None]


def test_a_judge_says_whether_a_task_was_solved():
    said = iter(['{"solved": true}', 'Well: {"solved": false}.', '{"solved": "yes"}', "yes", '["solved"]'])
    asked = []

    def complete(request):
        asked.append(request)
        return next(said)

    judge = Judge(FunctionChat("judge", complete=complete))
    assert judge.solved("Find a flight.", "search: three flights") is True
    assert "search: three flights" in str(asked[0].messages)
    assert [judge.solved("", "") for _ in range(4)] == [False, None, None, None]


def test_a_judge_is_taken_from_the_environment():
    assert judge_from_environment({}) is None
    found = judge_from_environment({"AGENTMARK_JUDGE_URL": "http://127.0.0.1:1/v1", "AGENTMARK_JUDGE_MODEL": "m"})
    assert found is not None
    assert isinstance(found.chat, HttpChat)
    with pytest.raises(SettingError, match="AGENTMARK_JUDGE_MODEL"):
        judge_from_environment({"AGENTMARK_JUDGE_URL": "http://127.0.0.1:1/v1"})
