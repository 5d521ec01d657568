"""Who takes part in a social simulation, and what they do next: a policy of our own, not a language model.

The list of a step depends on the persona, on what the agent sees, and on what it did last. It stands in for a model
that is strong enough to play a persona; every table that rests on it says so.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Any

from agentmark_lab.kit.data import find_data

LABEL = "persona policy, not a language model"
DATA = "oasis/personas_and_seeds.json"
REMEDY = "personas and seed posts of the AgentMark authors' OASIS scenarios"

# The actions of the paper's two platforms, with what anyone likes to do, as logarithms of weights.
TWITTER_LIKE = {
    "create_post": 0.0,
    "like_post": 0.6,
    "repost": 0.0,
    "follow": -0.4,
    "quote_post": 0.0,
    "do_nothing": -0.1,
}
REDDIT_LIKE = {
    "like_post": 0.6,
    "dislike_post": -0.6,
    "create_post": -0.1,
    "create_comment": 0.6,
    "like_comment": 0.2,
    "dislike_comment": -0.9,
    "search_posts": -0.9,
    "search_user": -1.5,
    "trend": -1.1,
    "refresh": -0.3,
    "do_nothing": -0.3,
    "follow": -0.9,
    "mute": -2.1,
}

TENDENCY = 1.2
INTEREST = 1.2
REPETITION = -0.8
IMPOSSIBLE = -5.0
SHARPNESS = 1.3
MEMORY = 3

_ON_POSTS = ("like_post", "dislike_post", "repost", "quote_post", "create_comment", "follow", "mute")
_ON_COMMENTS = ("like_comment", "dislike_comment")
_ENGAGING = ("like_post", "repost", "quote_post", "create_comment", "like_comment")
_IDLE = ("do_nothing", "refresh", "search_posts", "search_user", "trend")


@dataclass(frozen=True)
class Persona:
    """One of the authors' personas."""

    name: str
    user_name: str
    description: str
    profile: str
    tendencies: tuple[str, ...]

    @cached_property
    def interests(self) -> frozenset[str]:
        return words(f"{self.description} {self.profile}")


@dataclass(frozen=True, slots=True)
class Comment:
    id: int
    author: int


@dataclass(frozen=True, slots=True)
class Post:
    """A post as it appears in a feed."""

    id: int
    author: int
    text: str
    comments: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """What an agent sees: the posts of others in its feed, and its own last actions."""

    posts: tuple[Post, ...]
    recent: tuple[str, ...] = ()

    @property
    def comments(self) -> tuple[Comment, ...]:
        return tuple([comment for post in self.posts for comment in post.comments])


@dataclass(frozen=True, slots=True)
class Scenario:
    """The personas of a platform and the posts that it begins with, each with its comments."""

    personas: tuple[Persona, ...]
    seeds: tuple[tuple[str, tuple[str, ...]], ...]


def words(text: str) -> frozenset[str]:
    """The longer words of a text: what a post and a profile may have in common."""
    return frozenset(re.findall(r"[a-z]{5,}", text.lower()))


def touches(persona: Persona, post: Post) -> bool:
    return not persona.interests.isdisjoint(words(post.text))


def weights(persona: Persona, view: View, base: Mapping[str, float]) -> dict[str, float]:
    """P_t, up to its sum, over the actions of `base`."""
    interest = sum([touches(persona, post) for post in view.posts]) / max(1, len(view.posts))
    repeated = Counter(view.recent[-MEMORY:])
    scores = dict(base)
    for name in scores:
        if name in persona.tendencies:
            scores[name] += TENDENCY
        if name in _ENGAGING:
            scores[name] += INTEREST * interest
        if name in _IDLE:
            scores[name] -= INTEREST * interest
        if (name in _ON_POSTS and not view.posts) or (name in _ON_COMMENTS and not view.comments):
            scores[name] += IMPOSSIBLE
        scores[name] += REPETITION * repeated[name]
    return {name: exp(SHARPNESS * score) for name, score in scores.items()}


def load_scenario(platform: str) -> Scenario:
    """The authors' scenario for `twitter` or `reddit`."""
    content = json.loads(find_data(DATA, remedy=REMEDY).read_text(encoding="utf-8"))
    personas = tuple([_persona(entry) for entry in content[f"{platform}_personas"]])
    if platform == "twitter":
        return Scenario(personas, tuple([(entry["content"], ()) for entry in content["twitter_seed_tweets"]]))
    return Scenario(personas, tuple([_thread(entry) for entry in content["reddit_seed_posts"]]))


def _persona(entry: Mapping[str, Any]) -> Persona:
    tendencies = tuple([name.lower() for name in entry["behavior_tendency"]])
    return Persona(entry["name"], entry["user_name"], entry["description"], entry["profile"], tendencies)


def _thread(entry: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    comments: Sequence[Mapping[str, Any]] = entry["initial_comments"]
    return f"{entry['title']}\n\n{entry['content']}", tuple([comment["content"] for comment in comments])
