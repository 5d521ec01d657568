"""The repetition code of App. H.2: the payload's bits in a circle through F's channel, instead of RLNC rows.

It needs a pointer that both sides keep in step, which is what erasures break.
"""

import random
from collections.abc import Iterable

from agentmark.core.cyclic_shift import cyclic_shift_decode, cyclic_shift_encode, short_len
from agentmark.core.distribution import BehaviorDistribution, Probabilities
from agentmark.core.scheme_f import draw_bin, pad_bits, step_bits
from agentmark.embed.session import Choice
from agentmark.keys.shared import SharedKey
from agentmark.policies.chooser import PeerLog
from agentmark.record import StepRecord

POLICY = "repetition"


class RepetitionSession:
    """Algorithm 1 with the pointer l of the paper: each step spends the next c_t bits of m, m, m, ..."""

    def __init__(self, key: SharedKey, payload: int, *, payload_len: int, rng: random.Random | None = None) -> None:
        """`rng` draws the session's nonce, for runs that shall repeat."""
        self._key = key
        self._bits = [payload >> (payload_len - 1 - i) & 1 for i in range(payload_len)]
        self._pointer = 0
        self._log = PeerLog(POLICY, key_id=key.id, payload_len=payload_len, rng=rng)

    def choose(self, weights: Probabilities) -> Choice:
        distribution = BehaviorDistribution.quantise(weights)
        drawn = step_bits(self._key.step_key(self._log.next_context(), len(self._bits)))
        chosen = draw_bin(distribution, drawn)
        count = short_len(chosen.size) + 1
        coming = 0
        for i in range(count):
            coming = coming << 1 | self._bits[(self._pointer + i) % len(self._bits)]
        position, spent = cyclic_shift_encode(coming ^ pad_bits(drawn, count), chosen.size, chosen.shift)
        self._pointer = (self._pointer + spent.length) % len(self._bits)
        return self._log.write(distribution, distribution.behaviors[position])


def surviving_bits(records: Iterable[StepRecord], key: SharedKey) -> str:
    """The payload bits of the records in the order given, as text of 0 and 1; impossible steps give none."""
    stream = []
    for record in records:
        if record.distribution is None:
            continue
        drawn = step_bits(key.step_key(record.context, record.payload_len))
        chosen = draw_bin(record.distribution, drawn)
        position = record.distribution.position(record.behavior)
        if position < chosen.size:
            code = cyclic_shift_decode(position, chosen.size, chosen.shift)
            unmasked = code.bits ^ pad_bits(drawn, code.length)
            stream.append(f"{unmasked:0{code.length}b}" if code.length else "")
    return "".join(stream)


def contains_intact_segment(stream: str, payload: int, *, payload_len: int) -> bool:
    """The paper's success rule: an intact run of the payload survives somewhere.

    Generous to the code: a real decoder, blind to the pointer, would still have to know where the run begins.
    """
    return f"{payload:0{payload_len}b}" in stream
