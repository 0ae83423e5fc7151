"""One GPU for all engine tests of a process."""

from collections.abc import Iterator

import pytest

from app.engine.device import Gpu
from app.engine.selftest import Bench


@pytest.fixture(scope="session")
def gpu() -> Iterator[Gpu]:
    gpu = Gpu.open()
    yield gpu
    gpu.close()


@pytest.fixture
def bench(gpu: Gpu) -> Iterator[Bench]:
    bench = Bench(gpu)
    yield bench
    bench.close()
