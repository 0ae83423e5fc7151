"""Block formats against the gguf package's own dequantisation."""

import gguf
import numpy as np
import pytest

from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.selftest import random_matrix
from app.engine.weights.layout import GRANULE, pack, packed_bytes, placed
from app.engine.weights.reference import dequantise


@pytest.mark.parametrize("kind", list(TensorType), ids=lambda k: k.name)
def test_values_equal_the_format_definition(kind: TensorType) -> None:
    rows, columns = 6, 768
    raw = random_matrix(kind, rows, columns, 7)
    expected = gguf.quants.dequantize(_as_stored(kind, raw.reshape(rows, -1)), gguf.GGMLQuantizationType(int(kind)))
    got = dequantise(kind, raw, rows, columns)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


def _as_stored(kind: TensorType, rows: np.ndarray) -> np.ndarray:
    """The package takes floats as floats and blocks as bytes."""
    floats = {TensorType.F32: np.float32, TensorType.F16: np.float16}
    return rows.view(floats[kind]) if kind in floats else rows


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


@pytest.mark.parametrize("kind", [k for k in TensorType if BLOCKS[k].values > 1], ids=lambda k: k.name)
def test_pieces_of_a_large_matrix_lie_as_in_a_small_one(kind: TensorType) -> None:
    """Rows past the first million values, against the same rows packed alone; at an odd address, too."""
    columns, rows = 4096, 301
    raw = random_matrix(kind, rows, columns, 3)
    odd = np.empty(raw.size + 1, np.uint8)[1:]
    odd[:] = raw
    whole = pack(kind, raw, rows, columns)
    last = pack(kind, raw.reshape(rows, -1)[-1:].reshape(-1), 1, columns)
    assert np.array_equal(whole.quants[-last.quants.size :], last.quants)
    assert np.array_equal(
        dequantise(kind, raw, rows, columns)[-1:], dequantise(kind, raw.reshape(rows, -1)[-1:], 1, columns)
    )
    assert np.array_equal(pack(kind, odd, rows, columns).extra, whole.extra)


@pytest.mark.parametrize("kind", list(TensorType), ids=lambda k: k.name)
def test_rows_packed_in_pieces_fall_into_their_places(kind: TensorType) -> None:
    columns, rows = 512, 13
    raw = random_matrix(kind, rows, columns, 3)
    whole, rows_of = pack(kind, raw, rows, columns), raw.reshape(rows, -1)
    streams = [np.zeros(whole.quants.size, np.uint8), np.zeros(whole.extra.size, np.uint8)]
    for first in range(0, rows, 2 * GRANULE):
        part = rows_of[first : first + 2 * GRANULE]
        piece = pack(kind, part.reshape(-1), len(part), columns)
        for stream, start, data in placed(kind, piece, first, rows, columns):
            assert start % 4 == 0
            streams[stream][start : start + data.size] = data
    assert np.array_equal(streams[0], whole.quants)
    assert np.array_equal(streams[1], whole.extra)
