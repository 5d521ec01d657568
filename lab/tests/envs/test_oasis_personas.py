"""The personas' policy: its lists depend on who acts, what is seen and what was done."""

from math import log2

import pytest
from agentmark_lab.envs.oasis_personas import REDDIT_LIKE, TWITTER_LIKE, Comment, Persona, Post, View, touches, weights

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
