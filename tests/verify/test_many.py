"""Many logs in parts: what is said of them does not depend on how they were divided, nor on where they were kept."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import EVEN, state_of

from agentmark import Embedder, Identity, Registry, SharedKey, StepRecord, Verifier
from agentmark.core.errors import StateError
from agentmark.verify import many
from agentmark.verify.correction import Correction, FalseDiscovery, Familywise
from agentmark.verify.many import Group, HeldPart, JudgedParts, Part, SortedLog, judge_parts
from agentmark.verify.part_bytes import logs_from_bytes, logs_to_bytes, verdicts_from_bytes, verdicts_to_bytes
from agentmark.verify.readings import ReadingList
from agentmark.verify.verdict import Standing, Verdict

KEY = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(200, 232)))
TENANTS = {"acme": 0x2265, "globex": 0x91B7, "initech": 0xD8F1}
REGISTRY = Registry(16, [Identity(name, payload) for name, payload in TENANTS.items()])


def session(name: str, payload: int, *, steps: int, scheme: str = "F", key: SharedKey = KEY) -> list[StepRecord]:
    run = Embedder(key, payload, payload_len=16, scheme=scheme).session(name)
    return [run.choose(EVEN).record for _ in range(steps)]


def altered(log: Sequence[StepRecord], count: int, rng: random.Random) -> list[StepRecord]:
    """So many of its steps with choices of somebody else."""
    changed = set(rng.sample(range(len(log)), count))
    return [replace(r, behavior=rng.choice(list(EVEN))) if i in changed else r for i, r in enumerate(log)]


def all_kinds(rng: random.Random) -> dict[str, list[StepRecord]]:
    """Clean logs, some with foreign steps, some unmarked, mixed, short, copied, and of other keys."""
    logs: dict[str, list[StepRecord]] = {}
    for i, payload in enumerate(TENANTS.values()):
        for scheme in "FR":
            name = f"{scheme} {i}"
            logs[f"clean {name}"] = session(f"clean {name}", payload, steps=30, scheme=scheme)
            logs[f"foreign {name}"] = altered(session(f"foreign {name}", payload, steps=40, scheme=scheme), 3, rng)
        for j in range(6):
            logs[f"short {i} {j}"] = session(f"short {i} {j}", payload, steps=7)
    noise = session("noise", 1, steps=30)
    logs["noise"] = altered(noise, 30, rng)
    logs["mixed"] = session("mixed a", TENANTS["acme"], steps=80) + session("mixed b", TENANTS["globex"], steps=80)
    logs["copy of short 0 0"] = logs["short 0 0"]
    logs["not ours"] = session("not ours", 5, steps=10, key=OTHER)
    logs["empty"] = []
    return logs


class DiskPart:
    """A part in two files: all that the driver holds of it is where they are."""

    def __init__(self, folder: Path, logs: Sequence[SortedLog], registry: Registry | None) -> None:
        self._logs, self._verdicts = folder / "logs", folder / "verdicts"
        self._registry = registry
        folder.mkdir()
        self._logs.write_bytes(logs_to_bytes(logs))

    def logs(self) -> Sequence[SortedLog]:
        return logs_from_bytes(self._logs.read_bytes())

    def verdicts(self) -> Sequence[Verdict]:
        data = self._verdicts.read_bytes()
        return verdicts_from_bytes(data, self.logs(), keys_given=(KEY.id,), registry=self._registry)

    def keep(self, verdicts: Sequence[Verdict], /) -> None:
        self._verdicts.write_bytes(verdicts_to_bytes(verdicts))


def sorted_logs(verifier: Verifier, logs: dict[str, list[StepRecord]]) -> list[SortedLog]:
    groups = [Group(name=name, files=(name,), state=state_of(verifier, log)) for name, log in logs.items()]
    return [group.sorted_out(verifier.payload_len) for group in groups]


def divided(logs: Iterable[SortedLog], count: int, rng: random.Random) -> list[list[SortedLog]]:
    parts: list[list[SortedLog]] = [[] for _ in range(count)]
    for log in logs:
        rng.choice(parts).append(log)
    for part in parts:
        rng.shuffle(part)
    return parts


def answers(judged: JudgedParts) -> tuple[dict[str, Any], list[Any], int]:
    """What is said of each log, by name, and of the pools, by the names of their rows."""
    rows = [row for part in judged.rows() for row in part]
    pools = [replace(pool, rows=()) for pool in judged.pools]
    members = [sorted([rows[i].name for i in pool.rows]) for pool in judged.pools]
    return {row.name: row for row in rows}, [pools, members], judged.questions


@pytest.mark.parametrize("correction", [Familywise(), FalseDiscovery(1e-4)], ids=["familywise", "fdr"])
@pytest.mark.parametrize("registry", [None, REGISTRY], ids=["open", "registry"])
def test_no_division_into_parts_makes_a_difference(
    correction: Correction, registry: Registry | None, tmp_path: Path
) -> None:
    rng = random.Random(5)
    verifier = Verifier(KEY, registry=registry, work_limit=100_000)
    logs = sorted_logs(verifier, all_kinds(rng))
    whole = answers(judge_parts(verifier, [HeldPart(logs)], correction=correction))
    names, (pools, members), _ = whole
    assert {name: row.verdict.standing for name, row in names.items() if "foreign" in name or "clean" in name} == {
        name: Standing.ATTRIBUTED for name in names if "foreign" in name or "clean" in name
    }
    assert {found.payload for found in names["mixed"].verdict.found} == {TENANTS["acme"], TENANTS["globex"]}
    assert names["noise"].verdict.standing is Standing.NOT_ATTRIBUTED
    # A pool crosses every border between parts, and a copy under another name is in none.
    assert len(pools) > 0
    assert all("copy" not in name or "short 0 0" not in mine for mine in members for name in mine)
    for count in (6,):
        parts: list[Part] = [HeldPart(part) for part in divided(logs, count, rng)]
        assert answers(judge_parts(verifier, parts, correction=correction)) == whole
    on_disk = [DiskPart(tmp_path / str(i), part, registry) for i, part in enumerate(divided(logs, 3, rng))]
    kept, said_of_pools, asked = answers(judge_parts(verifier, on_disk, correction=correction))
    assert kept == names
    assert (said_of_pools, asked) == whole[1:]


def test_too_many_short_steps_are_not_pooled_and_the_roll_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = Verifier(KEY, registry=REGISTRY)
    logs = sorted_logs(verifier, {f"{i}": session(f"{i}", TENANTS["acme"], steps=7) for i in range(12)})
    judged = judge_parts(verifier, [HeldPart(logs)], correction=Familywise())
    assert (len(judged.pools), judged.questions, judged.not_pooled) == (1, 13, 0)
    monkeypatch.setattr(many, "MOST_POOLED_STEPS", 12 * 7 - 1)
    judged = judge_parts(verifier, [HeldPart(logs)], correction=Familywise())
    assert (judged.pools, judged.questions, judged.not_pooled) == ((), 12, 84)


def test_steps_that_stand_elsewhere_are_not_counted_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = Verifier(KEY)
    log = session("one", 1, steps=9)
    logs = sorted_logs(verifier, {"one": log, "two": log[:4]})
    counted = judge_parts(verifier, [HeldPart(logs)], correction=Familywise())
    assert [row.shared_contexts for rows in counted.rows() for row in rows] == [4, 4]
    monkeypatch.setattr(many, "MOST_COMPARED_STEPS", 12)
    counted = judge_parts(verifier, [HeldPart(logs)], correction=Familywise())
    assert [row.shared_contexts for rows in counted.rows() for row in rows] == [None, None]


def test_copies_of_a_short_log_under_other_names_add_nothing() -> None:
    verifier = Verifier(KEY, registry=REGISTRY)
    log = session("one", TENANTS["acme"], steps=7)
    alone = {"one": log, "two": session("two", TENANTS["globex"], steps=7)}
    copies = {f"copy {i:02}": log for i in range(40)}
    parts = [HeldPart([one]) for one in sorted_logs(verifier, alone | copies)]
    assert judge_parts(verifier, parts, correction=Familywise()).pools == ()


def test_the_driver_holds_a_few_numbers_of_a_log() -> None:
    """Some fifty bytes a log, whatever it says: what the phases return to it."""
    verifier = Verifier(KEY, registry=REGISTRY)
    logs = sorted_logs(verifier, {"one": session("one", TENANTS["acme"], steps=30)}) * 1000
    seen = many.survey(logs)
    looked = many.Looked.of([Verifier(KEY).judge.judged(logs[0])] * 1000)
    numbers = (seen.steps, seen.lengths, seen.potential, looked.surpluses)
    assert sum([column.itemsize * len(column) for column in numbers]) <= 50 * 1000
    assert len(looked.named) == 1


def test_a_sorted_log_and_its_verdict_pass_through_bytes() -> None:
    rng = random.Random(3)
    verifier = Verifier(KEY, registry=REGISTRY)
    for log in sorted_logs(verifier, all_kinds(rng)):
        for read in (ReadingList.from_bytes, None):
            [again] = (
                logs_from_bytes(logs_to_bytes([log])) if read is None else logs_from_bytes(logs_to_bytes([log]), read)
            )
            assert replace(again, readings=log.readings) == log
            assert list(again.readings) == list(log.readings)
            verdict = verifier.judge.judged(log)
            assert verifier.judge.judged(again) == verdict
        data = verdicts_to_bytes([verdict])
        assert verdicts_from_bytes(data, [log], registry=REGISTRY) == [verdict]


def test_bytes_that_are_cut_short_padded_or_changed_are_refused_or_say_so() -> None:
    verifier = Verifier(KEY)
    [log] = sorted_logs(verifier, {"one": session("one", 0x2265, steps=6)})
    data = logs_to_bytes([log])
    for damaged in (data[:-1], data + b"\0", b"x" + data[1:], data.replace(b'"USED":6', b'"USED":5')):
        with pytest.raises(StateError):
            logs_from_bytes(damaged)
    swapped = replace(log, contexts=log.contexts[32:64] + log.contexts[:32] + log.contexts[64:])
    with pytest.raises(StateError, match="contexts"):
        logs_from_bytes(logs_to_bytes([swapped]))
    said = verdicts_to_bytes([verifier.judge.judged(log)])
    for damaged in (said[:-1], said + b"\0", b"x" + said[1:], said.replace(b'"rank":', b'"rink":')):
        with pytest.raises(StateError):
            verdicts_from_bytes(damaged, [log])
