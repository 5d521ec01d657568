"""The experiment on round trips notices what is read wrongly."""

import json
import random
from collections import Counter

from agentmark_lab.experiments.theory import roundtrip


def test_roundtrip_notices_a_wrong_payload():
    chunk = roundtrip.StepChunk("F", 200, 1, 0)
    assert roundtrip.run_chunk(chunk).outcomes == {roundtrip.READ: 200}
    rng = random.Random(1)
    key = roundtrip.random_key(rng)
    for scheme in ("F", "R"):
        session = roundtrip.Embedder(key, 0x5EED, payload_len=16, scheme=scheme).session("s")
        outcomes = {
            roundtrip.read_back(session.choose({"a": 1, "b": 1, "c": 1}), key, 0x5EED ^ 0x8001, rng, Counter())
            for _ in range(50)
        }
        assert outcomes - {roundtrip.READ}


def test_reordering_keeps_the_content_and_changes_the_order():
    rng = random.Random(1)
    line = json.dumps({"a": {"x": 1, "y": 2, "z": [{"p": 1, "q": 2}]}, "b": 2, "c": "\u641c"})
    texts = {roundtrip.reordered(line, rng) for _ in range(50)}
    assert len(texts) > 20
    assert all(json.loads(text) == json.loads(line) for text in texts)
