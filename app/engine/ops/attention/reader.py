"""How kernels read keys and values of each cache format."""

from __future__ import annotations

from app.engine.ops.rope import HeadShape
from app.engine.types import KvFormat

WORD_BYTES = 16
QUAD_TYPE = {KvFormat.F32: "vec4<f32>", KvFormat.F16: "vec2<u32>", KvFormat.INT8: "u32"}
"""The type that holds four neighbouring values."""

_FOUR = {
    KvFormat.F32: "{0}",
    KvFormat.F16: "vec4<f32>(unpack2x16float({0}.x), unpack2x16float({0}.y))",
    KvFormat.INT8: "vec4<f32>(unpack4xI8({0}))",
}


def word_values(kind: KvFormat) -> int:
    """Values in a 16-byte word."""
    return WORD_BYTES // kind.bytes


def word_type(kind: KvFormat) -> str:
    return "vec4<f32>" if kind is KvFormat.F32 else "vec4<u32>"


def word_fours(kind: KvFormat, word: str, scale: str) -> list[str]:
    """The values of a 16-byte word, four an expression, in ascending order."""
    if kind is KvFormat.F32:
        return [word]
    if kind is KvFormat.F16:
        return [f"vec4<f32>(unpack2x16float({word}.{a}), unpack2x16float({word}.{b}))" for a, b in ("xy", "zw")]
    return [f"vec4<f32>(unpack4xI8({word}.{c})) * {scale}" for c in "xyzw"]


def scale_at(shape: HeadShape, row: str, group: str, *, values: bool) -> str:
    """Scale of ``group`` of the key or value in ``row``, which is row * KV_HEADS + head."""
    groups = shape.size // 32
    return f"scales[({row}) * {2 * groups}u + {groups if values else 0}u + {group}]"


def quad_at(buffer: str, shape: HeadShape, row: str, quad: str) -> str:
    """Values 4 * quad to 4 * quad + 3 in ``row`` (row * KV_HEADS + head), still packed."""
    return f"{buffer}[({row}) * {shape.size // 4}u + {quad}]"


def quad_values(kind: KvFormat, packed: str, scale: str) -> str:
    read = _FOUR[kind].format(packed)
    return f"{read} * {scale}" if kind is KvFormat.INT8 else read


def quad_function(name: str, buffer: str, shape: HeadShape, kind: KvFormat, *, values: bool) -> str:
    """WGSL of ``name(rh, i)``: values 4i to 4i + 3 in row and head ``rh``."""
    return f"""fn {name}(rh: u32, i: u32) -> vec4<f32> {{
    let w = {quad_at(buffer, shape, "rh", "i")};
    return {quad_values(kind, "w", scale_at(shape, "rh", "i / 8u", values=values))};
}}"""


def scale_binding(kind: KvFormat, place: int) -> str:
    if kind is not KvFormat.INT8:
        return ""
    return f"@group(0) @binding({place}) var<storage, read> scales: array<f32>;"
