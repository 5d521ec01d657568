"""An elicitor by name, or the best that a provider has."""

import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom
from types import MappingProxyType

from agentmark.elicit.chat import with_costs
from agentmark.elicit.decisions import Decisions
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import ElicitationError, UnsupportedError, UpstreamError
from agentmark.elicit.http_chat import HttpChat
from agentmark.elicit.labels import Labels
from agentmark.elicit.learned import Learned
from agentmark.elicit.proposals import METHOD
from agentmark.elicit.sampled import Sampled
from agentmark.elicit.situation import Elicitation, Elicitor, Situation
from agentmark.elicit.verbalised import Verbalised
from agentmark.errors import SettingError

# Ways that are tried in turn, by the name of the whole.
LADDERS = {
    # Behaviors that are no tools, such as "go to shelf 1", cannot be sampled as calls: for them a list is stated.
    "auto": ("decisions", "systemone", "proposals", "labels", "verbalised"),
    "stated": ("decisions", "systemone", "labels", "verbalised"),
}
NAMES = ("decisions", "systemone", "proposals", "labels", "verbalised")
# Statuses with which providers say that they have no such route, model or parameter, or not for this key. Anything
# else, from a limit that is reached to a failure, is about this moment, and trying another way would hide it. But where
# an elicitor has never worked, a failure may be all that a server has to say of a route that it does not know.
_REFUSALS = frozenset({400, 401, 403, 404, 405, 406, 410, 413, 415, 422, 501})
_REFUSALS_AT_FIRST = frozenset({500, 502})

log = logging.getLogger(__name__)


def elicitor_for(endpoint: Endpoint, name: str = "auto", *, rng: Random | None = None) -> Elicitor:
    """An elicitor by name, or the first of several that the provider has.

    `auto` asks for the provider's decision, and else samples replies (for behaviors that are no tools: asks for a
    list). `stated` asks for its decision, and else for a list. `rng` shuffles the options.
    """
    if name in LADDERS:
        rungs = [elicitor_for(endpoint, rung, rng=rng) for rung in LADDERS[name]]
        return Auto(rungs, name=name, learned=endpoint.learned, endpoint=endpoint)
    if name in ("decisions", "systemone"):
        return Decisions(endpoint, name, rng=rng or SystemRandom())
    if name == "proposals":
        return Sampled(endpoint)
    if name == "labels":
        return Labels(HttpChat(endpoint), rng=rng)
    if name == "verbalised":
        return Verbalised(HttpChat(endpoint), rng=rng)
    raise SettingError("elicitor", f"{name!r} is none of {', '.join([*LADDERS, *NAMES])}")


@dataclass(frozen=True, slots=True)
class _PassedOver:
    """An elicitor that gave no list for this step, and what it said instead."""

    name: str
    error: ElicitationError


Steps = Generator[Elicitor, Elicitation | ElicitationError, Elicitation]


class Auto:
    """Tries elicitors in order. One that is refused is passed over, and not tried again once another has worked.

    Only then is it known that the refusal was about the way of asking: with a wrong key or a wrong name for the model
    all are refused, and the provider's error is raised. An elicitor that has worked before is tried again next time.
    """

    def __init__(
        self,
        elicitors: Sequence[Elicitor],
        *,
        name: str = "auto",
        learned: Learned | None = None,
        endpoint: Endpoint | None = None,
    ) -> None:
        """`learned` is what is known of the provider already; an endpoint has one. `endpoint` is whom all of them ask,
        for who wants to know."""
        if not elicitors:
            raise SettingError("elicitors", "there are none")
        self.name = name
        self.endpoint = endpoint
        self._elicitors = list(elicitors)
        self._learned = Learned() if learned is None else learned

    @property
    def passed_over(self) -> Mapping[str, str]:
        """The elicitors that are not tried any more, and why. May quote the provider."""
        return MappingProxyType(self._learned.passed_over)

    def elicit(self, situation: Situation) -> Elicitation:
        steps = self._steps()
        elicitor = next(steps)
        try:
            while True:
                try:
                    said: Elicitation | ElicitationError = elicitor.elicit(situation)
                except ElicitationError as error:
                    said = error
                elicitor = steps.send(said)
        except StopIteration as done:
            found: Elicitation = done.value
            return found

    async def aelicit(self, situation: Situation) -> Elicitation:
        steps = self._steps()
        elicitor = next(steps)
        try:
            while True:
                try:
                    said: Elicitation | ElicitationError = await elicitor.aelicit(situation)
                except ElicitationError as error:
                    said = error
                elicitor = steps.send(said)
        except StopIteration as done:
            found: Elicitation = done.value
            return found

    def _steps(self) -> Steps:
        """Yields the elicitor to ask, is sent what it said, and returns the first list, or what is left to say."""
        passed: list[_PassedOver] = []
        unusable: list[Elicitation] = []
        for elicitor in self._left():
            said = yield elicitor
            if isinstance(said, ElicitationError):
                if not _is_refusal(said, has_worked=elicitor.name in self._learned.worked):
                    raise said
                passed.append(_PassedOver(elicitor.name, said))
            elif said.weights is None and said.proposals is None:
                unusable.append(said)
                if said.method == METHOD:
                    # An agent that must not be sampled (at temperature 0) must not be bent by a stated list either.
                    break
            else:
                self._remember(elicitor.name, passed)
                return with_costs(said, [*unusable, said])
        if unusable:
            return with_costs(unusable[-1], unusable)
        raise _none_of(self.name, passed)

    def _left(self) -> list[Elicitor]:
        left = [elicitor for elicitor in self._elicitors if elicitor.name not in self._learned.passed_over]
        return left or self._elicitors

    def _remember(self, worked: str, passed: Sequence[_PassedOver]) -> None:
        self._learned.worked.add(worked)
        for refused in passed:
            if _about_this_step(refused.error) or refused.name in self._learned.worked:
                continue
            self._learned.passed_over[refused.name] = refused.error.fault
            # The provider's words may hold private text, and stay out of logs.
            log.info("%s: %s is passed over from now on (%s)", worked, refused.name, refused.error.logged)


def _is_refusal(error: ElicitationError, *, has_worked: bool) -> bool:
    if isinstance(error, UnsupportedError):
        return True
    status = _status(error)
    if status is None:
        return False
    # Something that is not JSON, or a redirect, is what some servers have for routes they do not know.
    return status in _REFUSALS or 200 <= status < 400 or (status in _REFUSALS_AT_FIRST and not has_worked)


def _about_this_step(error: ElicitationError) -> bool:
    """Too many options for an elicitor, or too long a conversation. Other refusals by a provider may be about anything,
    and are put down to the way of asking."""
    status = _status(error)
    return status == 413 or (isinstance(error, UnsupportedError) and status is None and not error.always)


def _status(error: ElicitationError) -> int | None:
    return error.status if isinstance(error, UpstreamError | UnsupportedError) else None


def _none_of(name: str, passed: Sequence[_PassedOver]) -> ElicitationError:
    """Why nothing worked: what the last one was told, which is what every chat with this model would be told; and the
    others."""
    last = passed[-1].error
    # With a bad key all are told the same, which need not be said five times.
    others = [refused for refused in passed[:-1] if refused.error.fault != last.fault]
    before = "; ".join([f"{refused.name}: {refused.error.fault}" for refused in others])
    fault = f"{last.fault} (before that, {before})" if before else last.fault
    if isinstance(last, UpstreamError) and last.status is not None:
        fault = fault.removeprefix(f"HTTP {last.status}: ")
        return UpstreamError(name, fault, last.status, parameter=last.parameter, logged=last.logged)
    return UnsupportedError(name, fault, always=False, logged=last.logged, status=_status(last))
