"""An elicitor by name, or the best that a provider has."""

from random import Random, SystemRandom

from agentmark.elicit.decisions import Decisions
from agentmark.elicit.endpoint import Endpoint, HttpChat
from agentmark.elicit.errors import UnsupportedError
from agentmark.elicit.labels import Labels
from agentmark.elicit.situation import Elicitation, Elicitor, Situation
from agentmark.elicit.verbalised import Verbalised
from agentmark.errors import SettingError

NAMES = ("decisions", "systemone", "labels", "verbalised")


def elicitor_for(endpoint: Endpoint, name: str = "auto", *, rng: Random | None = None) -> Elicitor:
    """`auto` takes the first of decisions, systemone, labels and verbalised that the provider has. `rng` shuffles the
    options."""
    if name == "auto":
        return Auto([elicitor_for(endpoint, one, rng=rng) for one in NAMES])
    if name in ("decisions", "systemone"):
        return Decisions(endpoint, name, rng=rng or SystemRandom())
    if name == "labels":
        return Labels(HttpChat(endpoint), rng=rng)
    if name == "verbalised":
        return Verbalised(HttpChat(endpoint), rng=rng)
    raise SettingError("elicitor", f"{name!r} is none of auto, {', '.join(NAMES)}")


class Auto:
    """Tries elicitors in order. One that the provider does not have is not tried again."""

    name = "auto"

    def __init__(self, elicitors: list[Elicitor]) -> None:
        if not elicitors:
            raise SettingError("elicitors", "there are none")
        self._left = list(elicitors)

    def elicit(self, situation: Situation) -> Elicitation:
        refusals = []
        for elicitor in list(self._left):
            try:
                return elicitor.elicit(situation)
            except UnsupportedError as error:
                refusals.append(self._passed_over(elicitor, error))
        raise UnsupportedError(self.name, "; ".join(refusals), always=False)

    async def aelicit(self, situation: Situation) -> Elicitation:
        refusals = []
        for elicitor in list(self._left):
            try:
                return await elicitor.aelicit(situation)
            except UnsupportedError as error:
                refusals.append(self._passed_over(elicitor, error))
        raise UnsupportedError(self.name, "; ".join(refusals), always=False)

    def _passed_over(self, elicitor: Elicitor, error: UnsupportedError) -> str:
        if error.always and len(self._left) > 1 and elicitor in self._left:
            self._left.remove(elicitor)
        return str(error)
