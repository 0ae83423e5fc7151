"""A trained hybrid far into a text, layer by layer against NumPy float64 (f32 caches).

1,024 tokens in the suite; ``POOLED_LONG=1`` makes it 4,096, which takes minutes where a processor imitates the GPU.
"""

import os

import numpy as np
import pytest

from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.options import Options
from app.engine.types import ColumnClass, KvFormat, Part
from tests.engine.reference import Reference
from tests.shared import shared_file

LENGTH = 4096 if os.environ.get("POOLED_LONG") else 1024
MARKED = [0, 3, 64, 255, 256, LENGTH // 4 - 1, LENGTH // 2 - 1, LENGTH // 2, LENGTH * 13 // 16, LENGTH - 1]
OPTIONS = Options(LENGTH, 2 << 30, KvFormat.F32)


@pytest.fixture(scope="module")
def reference() -> Reference:
    file = GgufFile.open(shared_file("models/nano-qwen35moe-Q8_0.gguf"))
    return Reference(file, read_config(file))


def test_layers_states_and_logits(gpu: Gpu, reference: Reference) -> None:
    """Each layer is given the reference's own input, so that what is compared is its own error."""
    file, config = reference.file, reference.config
    ids = [int(i) for i in np.random.default_rng(6).integers(0, config.vocab, LENGTH)]
    x = reference.embed(ids)
    for index in range(config.layers):
        layer = Engine.load(gpu, file, Part(index, index + 1), OPTIONS)
        got = layer.hidden(x.astype(np.float32), 0, ColumnClass.PROMPT)
        x, state = reference.layer(index, x)
        assert np.abs(got[MARKED] - x[MARKED]).max() <= 1e-3 * max(1.0, np.abs(x[MARKED]).max()), index
        if state is not None:
            assert np.abs(exported_state(layer) - state).max() <= 1e-3 * max(1.0, np.abs(state).max()), index
        layer.close()
    whole = Engine.load(gpu, file, Part(config.layers, config.layers, head=True), OPTIONS)
    logits = whole.logits(x[MARKED].astype(np.float32))
    assert np.abs(logits - reference.logits(x[MARKED])).max() <= 1e-3
    whole.close()


def exported_state(layer: Engine) -> np.ndarray:
    """[heads, key, value] of a part with one recurrent layer; the matrix comes first of an exported state."""
    shape = layer.config.delta
    assert shape
    _, pieces = layer.export()
    raw = np.concatenate(list(pieces))[: shape.inner * shape.size * 4].view(np.float32)
    packed = raw.reshape(shape.value_heads, shape.size // 4, shape.size, 4)
    return packed.transpose(0, 1, 3, 2).reshape(shape.value_heads, shape.size, shape.size)
