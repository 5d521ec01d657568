"""Records of every shape that reading has to know, for tests of the columns."""

import random
from dataclasses import replace

from agentmark import BehaviorDistribution, SharedKey, StepRecord
from agentmark.core.schemes import SCHEMES

KEY = SharedKey(bytes(range(32)))
SECOND_KEY = SharedKey(bytes(range(100, 132)))
FOREIGN_KEY = SharedKey(bytes(range(7, 39)))

OPTIONS = (1, 1, 2, 2, 3, 4, 5, 6, 6, 6, 7, 8, 10, 20)
LENGTHS = (0, 1, 8, 16, 16, 16, 31, 32, 60, 63, 64, 65, 128, 200)


def random_distribution(rng: random.Random, options: int) -> BehaviorDistribution:
    """Peaked, flat, with ties and with options of no weight."""
    alpha = rng.choice([0.05, 0.3, 1.0, 20.0])
    masses = [rng.gammavariate(alpha, 1) + 1e-40 for _ in range(options)]
    if rng.random() < 0.2:
        masses = [float(rng.randint(1, 3)) for _ in range(options)]
    if rng.random() < 0.2:
        masses = [mass if i == 0 or rng.random() < 0.6 else 0.0 for i, mass in enumerate(masses)]
    names = [f"{rng.choice(['search', 'büchen', 'x', '提出 a form'])} {i}" for i in range(options)]
    return BehaviorDistribution.quantise(dict(zip(names, masses, strict=True)))


def random_record(rng: random.Random, *, options: int | None = None, payload_len: int | None = None) -> StepRecord:
    """One step: mostly chosen with the mark, else by chance; mostly under a key that is held."""
    scheme = rng.choice("FR")
    options = rng.choice(OPTIONS) if options is None else options
    payload_len = rng.choice(LENGTHS) if payload_len is None else payload_len
    key = rng.choices([KEY, SECOND_KEY, FOREIGN_KEY], [8, 2, 1])[0]
    distribution = random_distribution(rng, options)
    context = rng.randbytes(32)
    chosen = None
    if rng.random() < 0.7:
        payload = rng.getrandbits(payload_len)
        step_key = key.step_key(context, payload_len)
        chosen = SCHEMES[scheme].choose(distribution, step_key, payload=payload, payload_len=payload_len)
    record = StepRecord(
        scheme=scheme,
        key_id=key.id,
        payload_len=payload_len,
        session=f"session {rng.randrange(5)}",
        step_index=rng.randrange(1000),
        context=context,
        distribution=distribution,
        behavior=chosen or rng.choice(distribution.behaviors),
        marked=True,
    )
    kind = rng.random()
    if kind < 0.05:
        return replace(record, marked=False, reason="test", distribution=rng.choice([None, distribution]))
    if kind < 0.1:
        kept = rng.sample(distribution.behaviors, rng.randint(0, options))
        return record.with_partial_weights({name: distribution.weight(name) for name in kept})
    return record


def random_records(seed: int, count: int) -> list[StepRecord]:
    """Steps of usual shapes, and a few of unusual ones; some stand there again, as they were or altered."""
    rng = random.Random(seed)
    records: list[StepRecord] = []
    for _ in range(count):
        if records and rng.random() < 0.05:
            records.append(_again(rng, rng.choice(records)))
        elif rng.random() < 0.01:
            records.append(random_record(rng, options=rng.randint(20, 300)))
        elif rng.random() < 0.01:
            records.append(random_record(rng, payload_len=rng.choice([500, 512, 513, 1024, 4096])))
        else:
            records.append(random_record(rng))
    return records


def _again(rng: random.Random, record: StepRecord) -> StepRecord:
    alterations = [
        record,
        replace(record, session="a copy", enforced=rng.choice([None, True, False])),
        replace(record, payload_len=record.payload_len + 1),
        replace(record, scheme="R" if record.scheme == "F" else "F"),
        replace(record, key_id=rng.choice([KEY.id, SECOND_KEY.id])),
    ]
    if record.distribution is not None:
        alterations.append(replace(record, behavior=rng.choice(record.distribution.behaviors)))
        other = random_distribution(rng, 1)
        alterations.append(replace(record, distribution=other, behavior=other.behaviors[0]))
        if record.marked:
            alterations.append(record.with_partial_weights({record.behavior: 5}))
    if record.partial_weights:
        backwards = dict(reversed(record.partial_weights.items()))
        alterations.append(replace(record, partial_weights=backwards))
    return rng.choice(alterations)
