"""Kernels of every structure are taken by the compiler for Metal and Direct3D.

This says that a driver there gets a shader at all, not that it computes what it should: no such device has run one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from app.engine.device import Caps
from app.engine.gguf import TensorType
from app.engine.program import Kernel
from app.engine.types import Arithmetic, KvFormat
from tests.engine.kernels import CAPS, MODELS, PORTABLE, attention_tiles, kernels, placements
from tests.engine.translation import DXC, FXC, Shader, available, settled, translate

pytestmark = pytest.mark.skipif(not available(), reason="needs naga-wasm, which the set-up brings by npm")

SUBGROUPS = CAPS[3]
FORMS = {FXC: PORTABLE, DXC: SUBGROUPS}


def of(caps: Caps) -> Iterator[Kernel]:
    """Every family in both arithmetics, every cache and every type of weights, narrow and wide."""
    for config, arithmetic in product(MODELS.values(), Arithmetic):
        yield from kernels(config, TensorType.Q4_0, caps, arithmetic, widths=(1, 8, 64))
    for kv in KvFormat:
        yield from kernels(MODELS["qwen35"], TensorType.Q4_0, caps, Arithmetic.EXACT, kv, widths=(4, 64))
        yield from attention_tiles(kv, caps)
    for kind in TensorType:
        yield from placements(kind, caps)


@pytest.mark.parametrize("model", FORMS)
def test_every_kernel_can_be_translated(model: str) -> None:
    caps = FORMS[model]
    distinct = {(kernel.source, kernel.constants): kernel for kernel in of(caps)}
    shaders = {shader.structure: shader for kernel in distinct.values() if (shader := Shader.of(kernel, caps))}
    assert {shader.model for shader in shaders.values()} == {model}
    assert len(shaders) > 200
    version, found = translate(shaders.values())
    wrong = [f"{s.label}: {e}" for s, t in zip(shaders.values(), found, strict=True) for e in t.errors]
    assert not wrong, f"naga {version}, {len(wrong)}: {wrong[0]}"
    assert all(translated.msl and translated.hlsl for translated in found)


@pytest.mark.parametrize(("line", "wrong"), [("x[0]", ""), ("nothing", "nothing"), ("1.0", "u32")])
def test_what_is_wrong_is_said(line: str, wrong: str) -> None:
    source = (
        "@group(0) @binding(0) var<storage, read> x: array<u32>;"
        "@group(0) @binding(1) var<storage, read_write> y: array<u32>;"
        f"@compute @workgroup_size(8) fn main() {{ y[0] = {line}; }}"
    )
    _, [translated] = translate([Shader(source, FXC)])
    assert bool(translated.errors) == bool(wrong)
    assert wrong in "".join(translated.errors)
    assert bool(translated.msl) == bool(translated.hlsl) == (not wrong)


def test_constants_of_a_pipeline_are_written_in() -> None:
    source = "override ROWS: u32;\noverride SCALE: f32 = 2.0;\noverride UNSET: u32;"
    settled_source = settled(Kernel(source, (), (("ROWS", 7),)))
    assert settled_source == "const ROWS: u32 = 7u;\nconst SCALE: f32 = 2.0;\n"
