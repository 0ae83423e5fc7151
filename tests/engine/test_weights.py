"""Block formats against the gguf package's own dequantisation."""

import gguf
import numpy as np
import pytest

from app.engine.gguf.types import TensorType
from app.engine.selftest import random_matrix
from app.engine.weights.layout import pack, packed_bytes
from app.engine.weights.reference import dequantise


@pytest.mark.parametrize("kind", list(TensorType), ids=lambda k: k.name)
def test_values_equal_the_format_definition(kind: TensorType) -> None:
    rows, columns = 6, 768
    raw = random_matrix(kind, rows, columns, 7)
    expected = (
        gguf.quants.dequantize(
            raw.reshape(rows, -1).view(np.float32) if kind is TensorType.F32 else raw.reshape(rows, -1),
            gguf.GGMLQuantizationType(int(kind)),
        )
        if kind not in (TensorType.F32, TensorType.F16)
        else raw.view(np.float32 if kind is TensorType.F32 else np.float16).reshape(rows, columns).astype(np.float32)
    )
    got = dequantise(kind, raw, rows, columns)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", list(TensorType), ids=lambda k: k.name)
def test_announced_bytes_cover_the_streams(kind: TensorType) -> None:
    packed = pack(kind, random_matrix(kind, 3, 512, 7), 3, 512)
    quants, extra = packed_bytes(kind, 3, 512)
    assert quants == packed.quants.nbytes
    assert packed.extra.nbytes <= extra <= packed.extra.nbytes + 4


def test_float_rows_are_padded_to_whole_units() -> None:
    raw = np.arange(2 * 40, dtype=np.float32).view(np.uint8)
    packed = pack(TensorType.F32, raw, 2, 40)
    grid = packed.quants.view(np.float32).reshape(2, 64)
    assert grid[1, 39] == 79
    assert not grid[:, 40:].any()
