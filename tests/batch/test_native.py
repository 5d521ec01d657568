"""The native kernel: it says what NumPy says, and reads nothing outside its columns whatever they hold."""

import _ctypes
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pytest
from build_kernel import IN_PLACE, build_kernel, wheel_tag
from random_steps import KEY, SECOND_KEY

from agentmark.batch import library
from agentmark.batch.arrays import np
from agentmark.batch.hashing import Names, Steps
from agentmark.batch.library import NO_NATIVE
from agentmark.batch.native import Kernel, built_kernel
from agentmark.batch.read_f import read_f
from agentmark.batch.read_r import read_r
from agentmark.core.prf import F_STEP, prf


def steps_of(seed: int, count: int, *, payload_len: int = 40) -> Steps:
    rng = np.random.default_rng(seed)
    options = rng.integers(1, 9, count)
    start = np.cumsum(options) - options
    weights = []
    for number in options.tolist():
        parts = np.sort(rng.integers(1, 1 << 32, number - 1))
        weights.append(-np.sort(-np.diff(np.concatenate([[0], parts, [1 << 32]]))))
    return Steps(
        keys=[KEY, SECOND_KEY],
        key=rng.integers(0, 2, count).astype(np.int32),
        payload_len=payload_len,
        context=rng.integers(0, 256, (count, 32), dtype=np.uint8),
        list_start=start,
        options=options,
        position=rng.integers(0, options + 1),
        weight=np.concatenate(weights),
        name=np.concatenate([rng.permutation(30)[:number] for number in options.tolist()]).astype(np.int32),
        names=Names([f"ü {i}" for i in range(30)]),
    )


@pytest.mark.parametrize("payload_len", [0, 1, 16, 64, 65, 512])
def test_it_says_what_numpy_says(native_kernel: Kernel, payload_len: int) -> None:
    steps = steps_of(payload_len, 500, payload_len=payload_len)
    mine, numpys = native_kernel.read_f(steps), read_f(steps)
    for column in ("possible", "width", "symbol", "rows"):
        assert np.array_equal(getattr(mine, column), getattr(numpys, column)), column
    races, numpy_races = native_kernel.read_r(steps), read_r(steps)
    for column in ("possible", "near", "symbols", "pad", "rows"):
        assert np.array_equal(getattr(races, column), getattr(numpy_races, column)), column


@pytest.mark.parametrize("shortest", [95, 225, 1000])
def test_names_around_the_blocks_of_the_hash(native_kernel: Kernel, shortest: int) -> None:
    """20 bytes of label come before a name: at 108 bytes the first block is full, at 236 the second."""
    names = Names(["x" * size for size in range(shortest, shortest + 30)])
    steps = replace(steps_of(1, 200), names=names)
    assert np.array_equal(native_kernel.read_r(steps).symbols, read_r(steps).symbols)


def test_its_hash_is_keyed_blake2b(native_kernel: Kernel) -> None:
    """The pad of R is the first byte of block 0, under keys that hashlib made."""
    steps = steps_of(2, 60)
    steps = replace(steps, position=np.zeros(60, np.int64), options=np.ones(60, np.int64))
    steps = replace(steps, weight=np.full(len(steps.weight), 1 << 32))
    pads = native_kernel.read_r(steps).pad.tolist()
    for i, pad in enumerate(pads):
        key = steps.keys[steps.key[i]].step_key(steps.context[i].tobytes(), steps.payload_len)
        assert pad == blake2b(b"agentmark/1 R step\0\0\0\0\0", key=key).digest()[0]
        assert prf(key, F_STEP, bytes(4)) != prf(key, b"agentmark/1 R step", bytes(4))


HOSTILE = (-(2**63), -(2**32), -1, 0, 1, 255, 256, 257, 2**31 - 1, 2**32, 2**62, 2**63 - 1)


@pytest.mark.parametrize("column", ["key", "list_start", "options", "position", "weight", "name"])
def test_no_column_makes_it_leave_its_arrays(native_kernel: Kernel, column: str) -> None:
    """A value out of place is refused or read over; whatever it is, nothing beyond the arrays is touched."""
    rng = random.Random(column)
    refused = 0
    for seed in range(60):
        steps = steps_of(seed, 30)
        array = getattr(steps, column).copy()
        limits = np.iinfo(array.dtype)
        for _ in range(rng.randint(1, 3)):
            value = rng.choice((*HOSTILE, rng.randrange(len(steps.weight) + 2)))
            array[rng.randrange(len(array))] = min(max(value, limits.min), limits.max)
        broken = replace(steps, **{column: array})
        for read in (native_kernel.read_f, native_kernel.read_r):
            try:
                read(broken)
            except (ValueError, MemoryError):
                refused += 1
    assert refused > 10 or column == "position"


@pytest.mark.parametrize("column", ["key", "list_start", "options", "position", "name", "context"])
def test_columns_of_other_sizes_or_kinds_are_refused(native_kernel: Kernel, column: str) -> None:
    steps = steps_of(3, 20)
    for broken in (getattr(steps, column)[:-1], getattr(steps, column).astype(np.float64)):
        # The number of steps is that of `key`.
        for read in (native_kernel.read_f, native_kernel.read_r):
            with pytest.raises(ValueError, match="contradict"):
                read(replace(steps, **{column: broken}))


@pytest.mark.parametrize("payload_len", [-1, 513, 2**40])
def test_payload_lengths_that_it_does_not_read_are_refused(native_kernel: Kernel, payload_len: int) -> None:
    steps = replace(steps_of(4, 5), payload_len=payload_len)
    for read in (native_kernel.read_f, native_kernel.read_r):
        with pytest.raises((ValueError, MemoryError)):
            read(steps)


def test_it_can_be_turned_off(native_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "LIBRARY_FILE", native_file)
    monkeypatch.delenv(NO_NATIVE, raising=False)
    assert built_kernel() is not None
    monkeypatch.setenv(NO_NATIVE, "1")
    assert built_kernel() is None
    assert build_kernel(tmp_path / "another.so") == "AGENTMARK_NO_NATIVE is set"


def test_a_file_that_is_no_library_or_another_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NO_NATIVE, raising=False)
    broken = tmp_path / "_kernel.so"
    broken.write_bytes(b"no library")
    # A library, and none of ours.
    another = Path(_ctypes.__file__)
    for path in (broken, another, tmp_path / "missing.so"):
        monkeypatch.setattr(library, "LIBRARY_FILE", path)
        assert built_kernel() is None


def test_a_compiler_that_fails_or_is_missing_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NO_NATIVE, raising=False)
    monkeypatch.setenv("CC", shutil.which("false") or "false")
    fault = build_kernel(tmp_path / "_kernel.so")
    assert fault is not None
    assert "failed" in fault
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: None)
    assert build_kernel(tmp_path / "_kernel.so") == "there is no C compiler"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_wheel_has_the_kernel_or_is_for_any_machine(native_kernel: Kernel, tmp_path: Path) -> None:
    root = IN_PLACE.parents[3]
    for folder, settings, tag in (("with", {}, wheel_tag()), ("without", {NO_NATIVE: "1"}, "py3-none-any")):
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / folder, root]
        subprocess.run(command, check=True, env={**os.environ, **settings})
        (wheel,) = (tmp_path / folder).glob("*.whl")
        assert wheel.stem.endswith(tag)
        held = subprocess.run(
            [sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True
        ).stdout
        assert ("_kernel.so" in held) == (folder == "with")
