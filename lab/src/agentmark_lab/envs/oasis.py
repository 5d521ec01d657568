"""OASIS, a social platform with its own database and recommender, through its own package (camel-oasis), unforked.

Many agents act at once, so this is no `Environment` of single episodes: `simulate` runs a platform from beginning to
end and returns a trajectory for each agent. An agent sees its refreshed feed, its persona gives P_t, its chooser
chooses, and the platform executes the action as `ManualAction`.
"""

import asyncio
import io
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from agentmark.policies.chooser import Chooser
from agentmark.record import StepRecord
from agentmark_lab.envs.oasis_personas import (
    MEMORY,
    REDDIT_LIKE,
    TWITTER_LIKE,
    Comment,
    Persona,
    Post,
    View,
    load_scenario,
    touches,
    weights,
)
from agentmark_lab.kit.data import GET_OASIS, MissingError
from agentmark_lab.kit.draws import generator

FOLLOWS = (3, 5)


@dataclass(frozen=True, slots=True)
class Platform:
    """One of the paper's two platforms; `settings` are the package's own, but for the recommender where it needs a
    download."""

    name: str
    actions: Mapping[str, float]
    settings: Mapping[str, Any]


TWITTER = Platform(
    "twitter",
    TWITTER_LIKE,
    {"recsys_type": "random", "refresh_rec_post_count": 2, "max_rec_post_len": 2, "following_post_count": 3},
)
REDDIT = Platform(
    "reddit",
    REDDIT_LIKE,
    {
        "recsys_type": "reddit",
        "allow_self_rating": True,
        "show_score": True,
        "max_rec_post_len": 100,
        "refresh_rec_post_count": 5,
    },
)
PLATFORMS = {platform.name: platform for platform in (TWITTER, REDDIT)}


@dataclass(frozen=True, slots=True)
class Member:
    """An agent that takes part: who it plays, and how it chooses."""

    persona: Persona
    chooser: Chooser


@dataclass(frozen=True, slots=True)
class Act:
    """What an agent did at a step; `refusal` is the platform's own word, None if the action was carried out."""

    behavior: str
    arguments: Mapping[str, Any]
    refusal: str | None


@dataclass(slots=True)
class Trajectory:
    """One agent from beginning to end."""

    persona: str
    records: list[StepRecord] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)


def _excerpt(post: Post | None) -> str:
    return "something new" if post is None else " ".join(post.text.split()[:12])


def simulate(
    platform: Platform,
    members: Sequence[Member],
    *,
    steps: int,
    seed: int,
    work: Path,
    database: Path,
) -> list[Trajectory]:
    """Let the members live on a fresh platform for so many steps. The same seed and choosers give the same run.

    The seed fixes the follow graph, who posts the scenario's seeds, the feeds, and what each action is aimed at; which
    action is taken is the chooser's. The platform's database is left at `database`.
    """
    package = load_package(work)
    run = _Run(package, platform, members, seed=seed, database=database)
    with _seeded(seed):
        return asyncio.run(run.run(steps))


@cache
def load_package(work: Path) -> ModuleType:
    """Import the package, which writes log files into the working directory wherever it is imported."""
    if find_spec("oasis") is None:
        raise MissingError("the package camel-oasis", GET_OASIS)
    folder = work / "oasis"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with chdir(folder):
            package = import_module("oasis")
    except ModuleNotFoundError as error:
        raise MissingError(f"a package that camel-oasis needs ({error.name})", GET_OASIS) from None
    for name in ("social.agent", "social.twitter", "oasis.env", "camel"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return package


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The package draws from Python's global generator: seed it for the run, and put it back."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


class _Run:
    """One simulation."""

    def __init__(
        self,
        package: ModuleType,
        platform: Platform,
        members: Sequence[Member],
        *,
        seed: int,
        database: Path,
    ) -> None:
        self._package = package
        self._platform = platform
        self._members = members
        self._rng = generator(seed, "oasis", platform.name)
        self._targets = [generator(seed, "oasis", platform.name, "agent", i) for i in range(len(members))]
        self._database = database
        self._trajectories = [Trajectory(member.persona.name) for member in members]
        self._agents: list[Any] = []

    async def run(self, steps: int) -> list[Trajectory]:
        # The package prints where its database is.
        with redirect_stdout(io.StringIO()):
            stage = self._package.Platform(db_path=str(self._database), **self._platform.settings)
        env = self._package.make(agent_graph=self._graph(), platform=stage, database_path=str(self._database))
        await env.reset()
        try:
            await self._begin(env)
            for _ in range(steps):
                await self._step(env)
        finally:
            await env.close()
        return self._trajectories

    def _graph(self) -> Any:
        graph = self._package.AgentGraph()
        kind = _agent_class(self._package)
        for i, member in enumerate(self._members):
            # Two agents may play one persona, but no two have a user name in common.
            info = self._package.UserInfo(
                user_name=f"{member.persona.user_name}_{i}",
                name=member.persona.name,
                description=member.persona.description,
                recsys_type=self._platform.name,
            )
            agent = kind(agent_id=i, user_info=info, agent_graph=graph, model=_no_model())
            graph.add_agent(agent)
            self._agents.append(agent)
        return graph

    async def _begin(self, env: Any) -> None:
        """The scenario's posts and comments by random members, then the follow graph."""
        action = self._package.ActionType
        everyone = range(len(self._members))
        threads = load_scenario(self._platform.name).seeds
        posts = [
            self._agents[self._rng.choice(everyone)].perform_action_by_data(action.CREATE_POST, content=text)
            for text, _ in threads
        ]
        made = await asyncio.gather(*posts)
        comments = [
            self._agents[self._rng.choice(everyone)].perform_action_by_data(
                action.CREATE_COMMENT, post_id=post["post_id"], content=comment
            )
            for post, (_, texts) in zip(made, threads, strict=True)
            for comment in texts
        ]
        await asyncio.gather(*comments)
        follows = {}
        for i, agent in enumerate(self._agents):
            others = [j for j in everyone if j != i]
            followed = self._rng.sample(others, min(len(others), self._rng.randint(*FOLLOWS)))
            follows[agent] = [self._manual("follow", {"followee_id": j}) for j in followed]
        await env.step(follows)

    async def _step(self, env: Any) -> None:
        """Everyone looks, everyone chooses, everyone acts."""
        feeds = await asyncio.gather(*[agent.env.action.refresh() for agent in self._agents])
        views = [self._view(i, feed) for i, feed in enumerate(feeds)]
        choices = [
            member.chooser.choose(weights(member.persona, view, self._platform.actions))
            for member, view in zip(self._members, views, strict=True)
        ]
        arguments = [
            self._arguments(i, choice.behavior, view)
            for i, (choice, view) in enumerate(zip(choices, views, strict=True))
        ]
        await env.step(
            {
                agent: self._manual(choice.behavior, given)
                for agent, choice, given in zip(self._agents, choices, arguments, strict=True)
            }
        )
        for i, (choice, given) in enumerate(zip(choices, arguments, strict=True)):
            result = self._agents[i].answer
            refusal = None if result.get("success") else str(result.get("error") or result.get("message"))
            self._trajectories[i].records.append(choice.record)
            self._trajectories[i].acts.append(Act(choice.behavior, given, refusal))

    def _manual(self, behavior: str, arguments: Mapping[str, Any]) -> Any:
        return self._package.ManualAction(self._package.ActionType(behavior), dict(arguments))

    def _view(self, agent: int, feed: Mapping[str, Any]) -> View:
        """The feed without what the agent wrote itself. An empty feed is refused by the platform, and is empty."""
        posts = [_post(entry, agent) for entry in feed.get("posts", ()) if entry["user_id"] != agent]
        recent = [act.behavior for act in self._trajectories[agent].acts[-MEMORY:]]
        return View(tuple(posts), tuple(recent))

    def _arguments(self, agent: int, behavior: str, view: View) -> Mapping[str, Any]:
        """What the action is aimed at: what the persona cares for, if it sees any of it. Texts are templates that say
        who writes about what: nobody reads them."""
        persona, rng = self._members[agent].persona, self._targets[agent]
        liked = [post for post in view.posts if touches(persona, post)]
        post = rng.choice(liked or view.posts) if view.posts else None
        # An agent that sees nothing and acts on it all the same is refused by the platform.
        on_post = {"post_id": 0 if post is None else post.id}
        someone = agent if post is None else post.author
        text = f"{persona.name}, {behavior}: {_excerpt(post)}"
        makers: dict[str, Callable[[], Mapping[str, Any]]] = {
            "create_post": lambda: {"content": f"{persona.name}, {behavior}: {_excerpt(None)}"},
            "create_comment": lambda: {**on_post, "content": text},
            "quote_post": lambda: {**on_post, "quote_content": text},
            "like_post": lambda: on_post,
            "dislike_post": lambda: on_post,
            "repost": lambda: on_post,
            "like_comment": lambda: {"comment_id": _any_comment(view, rng)},
            "dislike_comment": lambda: {"comment_id": _any_comment(view, rng)},
            "follow": lambda: {"followee_id": someone},
            "mute": lambda: {"mutee_id": someone},
            "search_posts": lambda: {"query": rng.choice(sorted(persona.interests))},
            "search_user": lambda: {"query": rng.choice(self._members).persona.name},
        }
        return makers[behavior]() if behavior in makers else {}


def _any_comment(view: View, rng: random.Random) -> int:
    return rng.choice(view.comments).id if view.comments else 0


def _post(entry: Mapping[str, Any], agent: int) -> Post:
    comments = [Comment(c["comment_id"], c["user_id"]) for c in entry["comments"] if c["user_id"] != agent]
    return Post(entry["post_id"], entry["user_id"], entry["content"], tuple(comments))


@cache
def _agent_class(package: ModuleType) -> Any:
    """The package's agent, which keeps what the platform answered, for `env.step` does not pass it on; and its tools,
    for they would be described anew at every action."""

    class Agent(package.SocialAgent):  # type: ignore[misc, name-defined]
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.answer: Mapping[str, Any] = {}
            self.env.action.get_openai_function_list = lambda: self.action_tools

        async def perform_action_by_data(self, func_name: Any, *args: Any, **kwargs: Any) -> Any:
            self.answer = await super().perform_action_by_data(func_name, *args, **kwargs)
            return self.answer

    return Agent


@cache
def _no_model() -> Any:
    """Agents need a model to be made; here none is ever asked."""
    models = import_module("camel.models")
    types = import_module("camel.types")
    return models.StubModel(model_type=types.ModelType.STUB)
