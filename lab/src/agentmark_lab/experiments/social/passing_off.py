"""Logs that carry no mark, passed off as marked: the controls of the experiments on a social platform."""

from collections.abc import Iterable
from dataclasses import replace

from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark_lab.kit.agent_loop import MARKED


def as_marked(records: Iterable[StepRecord], policy: str, key: SharedKey, *, payload_len: int) -> list[StepRecord]:
    """Records of a control agent, passed off as marked with this key."""
    return [
        replace(record, scheme=MARKED[policy], key_id=key.id, payload_len=payload_len, marked=True, reason=None)
        for record in records
    ]
