"""What naming an identity costs (spec, section 9.2): the number of those that could have been named, in bits."""

from dataclasses import dataclass, replace
from math import log2

from agentmark.errors import SettingError
from agentmark.identity.registry import Registry


@dataclass(frozen=True, slots=True)
class Prices:
    """The price list of one question, fixed before the log is looked at."""

    registry: Registry | None = None
    # log2 of the number of questions of which this is one: offsets, keys, logs judged apart.
    tries_bits: float = 0.0
    # Whoever wrote the registry or makes the claim may have looked at the log first: all payloads are paid for.
    looked_first: bool = False

    def for_tries(self, tries: int) -> "Prices":
        """The same, for one of this many questions."""
        if tries < 1:
            raise SettingError("tries", f"{tries} is not a number of tries")
        return replace(self, tries_bits=self.tries_bits + log2(tries))

    def by_a_claimant(self) -> "Prices":
        """The same, where the claim and the registry may have been made to fit the log."""
        return replace(self, looked_first=True)

    def of_claim(self, payload_len: int) -> float:
        """A claim that was made beforehand pays for the tries alone."""
        return payload_len + self.tries_bits if self.looked_first else self.tries_bits

    def of(self, payload: int | None, payload_len: int) -> float:
        """-log2 of the identity's share of the tries: half for the registry's names, half for all payloads.

        None asks what the cheapest identity would cost.
        """
        if self.looked_first or self.registry is None or not len(self.registry):
            return payload_len + self.tries_bits
        if payload is not None and self.registry.holder(payload) is None:
            return payload_len + 1 + self.tries_bits
        # Beyond a thousand bits the second share is nothing to a double.
        return self.tries_bits - log2(1 / (2 * len(self.registry)) + 2.0 ** -min(payload_len + 1, 1000))
