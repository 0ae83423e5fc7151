"""Every kernel that can be generated keeps the rules of ``tests.wgsl_lint``, and each rule catches its breach."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from app.engine.device import Caps
from app.engine.program import Kernel
from tests.engine.kernels import CAPS, PORTABLE, of_all_models, of_all_types
from tests.wgsl_lint import check

HEAD = """@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> words: array<u32, 64>;
var<workgroup> vectors: array<vec4<f32>, 8>;
const TABLE = array<f32, 4>(1.0, 2.0, 3.0, 4.0);
fn waits() { workgroupBarrier(); }
fn pair() -> array<f32, 2> { return array<f32, 2>(0.0, 1.0); }
"""
MAIN = "fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) group: vec3<u32>)"


def kernel(body: str, *, head: str = HEAD, size: str = "64", layout: tuple[str, ...] = ("read", "write")) -> Kernel:
    return Kernel(f"{head}@compute @workgroup_size({size})\n{MAIN} {{\n{body}\n}}", layout)


@pytest.mark.parametrize("kernels", [of_all_models, of_all_types], ids=lambda f: f.__name__)
def test_generated_kernels_keep_the_rules(kernels: Callable[[], Iterator[tuple[Kernel, Caps]]]) -> None:
    distinct = {(k.source, k.layout, caps): k for k, caps in kernels()}
    assert len(distinct) > 500
    found = {line for (_, _, caps), k in distinct.items() for line in check(k, caps)}
    assert not found


@pytest.mark.parametrize(
    "body",
    [
        "for (var i = t; i < 64u; i += 8u) { workgroupBarrier(); }",
        "let n = x[t]; for (var i = 0u; i < n; i++) { workgroupBarrier(); }",
        "var n = 4u; if (t > 3u) { n = 5u; } for (var i = 0u; i < n; i++) { waits(); }",
        "for (var i = 0u; i < 9u; i++) { if (t == i) { break; } workgroupBarrier(); }",
        "var n = 0u; var m = 0u; for (var i = 0u; i < 9u; i++) { if (n > 0u) { waits(); } n = m; m = t; }",
        "if (words[0] > 1u) { return; } workgroupBarrier();",
        "if (y[0] > 1u) { workgroupBarrier(); }",
        "if (t > 3u) { words[0] = 1u; } else { storageBarrier(); }",
        "var n = 1u; n += t; while (n > 0u) { n--; workgroupBarrier(); }",
    ],
)
def test_a_barrier_needs_uniform_flow(body: str) -> None:
    assert any("non-uniform" in line for line in check(kernel(body), PORTABLE))


@pytest.mark.parametrize(
    "body",
    [
        "for (var i = 0u; i < 4u; i++) { workgroupBarrier(); }",
        "if (x[group.x] > 1u) { return; } workgroupBarrier();",
        "for (var i = t; i < 64u; i += 8u) { words[i] = i; } for (var i = 0u; i < 2u; i++) { waits(); }",
        "for (var i = 0u; i < 9u; i++) { if (t == i) { continue; } words[t] = 1u; } workgroupBarrier();",
    ],
)
def test_uniform_flow_is_seen_as_such(body: str) -> None:
    assert not check(kernel(body), PORTABLE)


@pytest.mark.parametrize(
    "body",
    [
        "var a: array<f32, 4>; a[t] = 1.0;",
        "let a = array<f32, 2>(1.0, 2.0); let b = a[t];",
        "let a = pair(); let b = a[t & 1u];",
        "let b = TABLE[t & 3u];",
    ],
)
def test_private_arrays_are_not_indexed_by_a_variable(body: str) -> None:
    assert any("private array" in line for line in check(kernel(body), PORTABLE))
    assert not check(kernel("let a = pair(); let b = a[1] + TABLE[2u]; words[t] = 1u;"), PORTABLE)


@pytest.mark.parametrize("target", ["vectors[t].x", "vectors[words[t] & 7u].y", "vectors[t][1]", "vectors[t][t & 3u]"])
@pytest.mark.parametrize("sign", ["=", "+="])
def test_no_component_of_a_shared_vector_is_written(target: str, sign: str) -> None:
    assert any("component" in line for line in check(kernel(f"{target} {sign} 1.0;"), PORTABLE))
    assert not check(kernel("vectors[words[t]] = vec4<f32>(1.0); let q = vectors[t].x == 1.0;"), PORTABLE)


def test_limits_of_the_portable_form() -> None:
    many = "".join(f"@group(0) @binding({i}) var<storage, read> b_{i}: array<u32>;\n" for i in range(9))
    assert "9 storage bindings" in check(kernel("", head=many, layout=("read",) * 9), PORTABLE)[0]
    assert "512 invocations" in check(kernel("", size="64, 8"), PORTABLE)[0]
    assert not check(kernel("", size="64, 4"), PORTABLE)
    room = "const N = 1024u;\nvar<workgroup> {}: array<vec4<f32>, {}>;\n"
    assert "16400 bytes" in check(kernel("", head=room.format("a", "N + 1u"), layout=()), PORTABLE)[0]
    assert not check(kernel("", head=room.format("a", "N"), layout=()), PORTABLE)
    assert not check(kernel("", head=room.format("a", "3u * N"), layout=()), CAPS[1])


def test_bindings_are_declared_as_they_are_bound() -> None:
    assert "is bound as" in check(kernel("", layout=("read", "read")), PORTABLE)[0]


def test_words_that_a_translator_refuses() -> None:
    assert "enable subgroups" in check(kernel("", head="enable subgroups;\n" + HEAD), PORTABLE)[0]
    assert "pointer" in check(kernel("", head=HEAD + "fn f(p: ptr<storage, array<u32>>) { }\n"), PORTABLE)[0]
    shuffle = kernel("words[t] = subgroupShuffleXor(t, 1u);")
    assert "subgroups where there are none" in check(shuffle, PORTABLE)[0]
    assert not check(shuffle, CAPS[2])
