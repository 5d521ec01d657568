"""What reads columns: NumPy, and the native kernel where there is a compiler to build it."""

import pytest
from build_kernel import build_kernel

from agentmark.batch.native import Kernel


@pytest.fixture(scope="session")
def native_kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    """The kernel as this clone has it, built for the tests."""
    target = tmp_path_factory.mktemp("kernel") / "_kernel.so"
    fault = build_kernel(target)
    if fault is not None:
        pytest.skip(f"the native kernel is not built here: {fault}")
    return Kernel(target)


@pytest.fixture(params=["numpy", "native"])
def kernel(request: pytest.FixtureRequest) -> Kernel | None:
    return None if request.param == "numpy" else request.getfixturevalue("native_kernel")
