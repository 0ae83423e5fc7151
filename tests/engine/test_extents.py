"""What a part is said to read is what its load reads: no byte more, and few that it does not."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import ModelError
from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile, TensorInfo
from app.engine.gguf.types import row_bytes
from app.engine.model import part_extents, tensor_extents
from app.engine.options import Options
from app.engine.types import KvFormat, Part
from tests.engine.models import Shape, write_model
from tests.golden import DATA

OPTIONS = Options(context=128, pledge=256 << 20, kv=KvFormat.F32, prompt_columns=64)
SHAPES = {
    "tied": Shape(),
    "untied": Shape("qwen2", tied=False),
    "experts": Shape("qwen3moe", experts=4),
}
GOLDEN = ("tiny-qwen35", "tiny-qwen35moe")


@pytest.fixture(scope="module", params=[*SHAPES, *GOLDEN])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GgufFile:
    if request.param in GOLDEN:
        return GgufFile.open(DATA / f"{request.param}.gguf")
    return GgufFile.open(write_model(tmp_path_factory.mktemp("extents") / "m.gguf", SHAPES[request.param]))


def parts_of(file: GgufFile) -> list[Part]:
    config = read_config(file)
    last = Part(config.layers - 1, config.layers, head=True, draft=config.drafts)
    return [Part(0, 1, embed=True), Part(1, 2), last, Part(0, config.layers, embed=True, head=True)]


@pytest.mark.parametrize("number", range(4), ids=["first", "middle", "last", "all"])
def test_a_load_reads_within_its_extents(
    gpu: Gpu, file: GgufFile, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = parts_of(file)[number]
    (path,) = file.parts
    read = np.zeros(path.stat().st_size, bool)
    plain = GgufFile.read_into

    def noted(self: GgufFile, tensor: TensorInfo, row: int, data: NDArray[np.uint8]) -> None:
        start = tensor.offset + row * row_bytes(tensor.kind, tensor.columns)
        read[start : start + data.size] = True
        plain(self, tensor, row, data)

    monkeypatch.setattr(GgufFile, "read_into", noted)
    Engine.load(gpu, file, part, OPTIONS).close()
    said = np.zeros_like(read)
    tensors = {extent for extents in tensor_extents(file).values() for extent in extents}
    for lo, hi in part_extents(file, part)[path]:
        said[lo:hi] |= (lo, hi) in tensors
    assert not (read & ~said).any(), "bytes were read that were not said to be needed"
    assert (said & ~read).sum() < 0.02 * said.sum(), "bytes were said to be needed that nobody read"


def test_a_part_the_model_does_not_have_is_a_typed_error(tmp_path: Path) -> None:
    file = GgufFile.open(write_model(tmp_path / "m.gguf", Shape()))
    with pytest.raises(ModelError, match="do not exist"):
        part_extents(file, Part(2, 9))


def test_headers_end_before_the_first_tensor(file: GgufFile) -> None:
    (path,) = file.parts
    first = min(lo for lo, _hi in tensor_extents(file)[path])
    assert first - 32 <= GgufFile.header_bytes(path) <= first
