"""A launch that does nothing but keep a GPU from slowing down between the steps of a split model."""

from __future__ import annotations

from app.engine.device import Gpu
from app.engine.memory import Allocator
from app.engine.program import Dispatch, Kernel, Program, compile_program

LANES, ROUNDS = 64, 400

SOURCE = f"""
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@compute @workgroup_size({LANES})
fn main(@builtin(local_invocation_id) lane: vec3<u32>) {{
    var x = lane.x;
    for (var i = 0u; i < {ROUNDS}u; i++) {{ x = x * 1664525u + 1013904223u; }}
    out[lane.x] = x;
}}
"""


def awake_program(gpu: Gpu, allocator: Allocator) -> Program:
    """A few microseconds of one workgroup."""
    kernel = Kernel(SOURCE, ("write",), label="awake")
    return compile_program(gpu, [Dispatch(kernel, (allocator.buffer(4 * LANES, "awake"),), (1, 1, 1))])
