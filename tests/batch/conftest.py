"""What reads lines and columns: msgspec and NumPy, and the native library where there is a compiler to build it."""

from collections.abc import Iterator
from ctypes import CDLL
from pathlib import Path

import pytest
from build_kernel import build_kernel

from agentmark.batch import library
from agentmark.batch.native import Kernel


@pytest.fixture(scope="session")
def native_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library as this clone has it, built for the tests."""
    target = tmp_path_factory.mktemp("kernel") / "_kernel.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(library.NO_NATIVE, raising=False)
        fault = build_kernel(target)
    if fault is not None:
        pytest.skip(f"the native library is not built here: {fault}")
    return target


@pytest.fixture(scope="session")
def native_library(native_file: Path) -> CDLL:
    return CDLL(str(native_file))


@pytest.fixture(scope="session")
def native_kernel(native_library: CDLL) -> Kernel:
    return Kernel(native_library)


@pytest.fixture(params=["numpy", "native"])
def kernel(request: pytest.FixtureRequest) -> Kernel | None:
    return None if request.param == "numpy" else request.getfixturevalue("native_kernel")


@pytest.fixture(params=["plain", "native"], scope="module")
def both_engines(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything in the package without the library, and with it."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "plain":
            patch.setenv(library.NO_NATIVE, "1")
        else:
            patch.delenv(library.NO_NATIVE, raising=False)
            patch.setattr(library, "LIBRARY_FILE", request.getfixturevalue("native_file"))
        yield
