"""Which GPU to use: by kind, then by measured copy speed, never simply the first (spec: wgpu §1)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import wgpu

from app.core.errors import GpuError

# What wgpu calls the kinds, best first. A processor that imitates a GPU is used only when nothing else is there.
_KIND_ORDER = {"DiscreteGPU": 0, "IntegratedGPU": 1, "VirtualGPU": 2, "Unknown": 3, "CPU": 4}
_BACKENDS = ("Vulkan", "Metal", "D3D12")
_PROBE_BYTES = 64 << 20
_PROBE_PASSES = 5
_PROBE_COPIES = 8


@dataclass(frozen=True)
class AdapterInfo:
    """One way to reach a GPU. ``memory`` is not told by the driver; ``binding`` is its largest binding in bytes."""

    name: str
    kind: str
    backend: str
    driver: str
    binding: int
    buffer: int

    @property
    def software(self) -> bool:
        return self.kind == "CPU"


def describe(adapter: Any) -> AdapterInfo:
    info, limits = adapter.info, adapter.limits
    return AdapterInfo(
        name=str(info["device"]),
        kind=str(info["adapter_type"]),
        backend=str(info["backend_type"]),
        driver=str(info["description"]),
        binding=int(limits["max-storage-buffer-binding-size"]),
        buffer=int(limits["max-buffer-size"]),
    )


def usable_adapters() -> list[Any]:
    """Every adapter that can compute, best kind first; one an entry even where two drivers reach it."""
    found = [a for a in wgpu.gpu.enumerate_adapters_sync() if describe(a).backend in _BACKENDS]
    return sorted(found, key=lambda a: _KIND_ORDER.get(describe(a).kind, 3))


def choose_adapter() -> Any:
    """The best adapter: among those of the best kind the fastest at copying.

    ``POOLED_GPU`` picks by a part of the name. Raises GpuError when nothing can compute.
    """
    adapters = _wanted(usable_adapters())
    if not adapters:
        raise GpuError(
            "No graphics processor this program can use was found.",
            "Install a Vulkan driver; without one this device can still join and ask.",
        )
    best = describe(adapters[0]).kind
    rivals = [a for a in adapters if describe(a).kind == best]
    return rivals[0] if len(rivals) == 1 else max(rivals, key=copy_speed)


def _wanted(adapters: list[Any]) -> list[Any]:
    wish = os.environ.get("POOLED_GPU", "").lower()
    return [a for a in adapters if wish in describe(a).name.lower()]


def copy_speed(adapter: Any) -> float:
    """Copy rate in GB/s on a throw-away device, 0 when it cannot be measured (spec: rooms §7.3)."""
    try:
        device = adapter.request_device_sync(required_limits=full_limits(adapter))
    except wgpu.GPUError:
        return 0.0
    try:
        return _measure(device)
    except wgpu.GPUError:
        return 0.0
    finally:
        device.destroy()


def full_limits(adapter: Any) -> dict[str, int]:
    """The adapter's own maxima: a device made without them may get a quarter of a binding."""
    return {key: int(value) for key, value in adapter.limits.items()}


def _measure(device: Any) -> float:
    usage = wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffers = [device.create_buffer(size=_PROBE_BYTES, usage=usage) for _ in range(2)]
    _copy(device, buffers, 2)
    best = min(_copy(device, buffers, _PROBE_COPIES) for _ in range(_PROBE_PASSES))
    return round(2 * _PROBE_BYTES * _PROBE_COPIES / best / 1e9, 1) if best >= 0.0005 else 0.0


def _copy(device: Any, buffers: list[Any], times: int) -> float:
    encoder = device.create_command_encoder()
    for i in range(times):
        encoder.copy_buffer_to_buffer(buffers[i % 2], 0, buffers[1 - i % 2], 0, _PROBE_BYTES)
    start = time.perf_counter()
    device.queue.submit([encoder.finish()])
    device.queue.read_buffer(buffers[0], 0, 4)
    return time.perf_counter() - start


_SUBGROUP_PROBE = """@group(0) @binding(0) var<storage, read_write> size: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(subgroup_size) own: u32) { size[0] = own; }
"""


def subgroup_size(device: Any) -> int:
    """Threads of a subgroup as a kernel sees it; adapters report a useless range (spec: wgpu §1)."""
    result = device.create_buffer(size=16, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
    pipeline = device.create_compute_pipeline(
        layout="auto", compute={"module": device.create_shader_module(code=_SUBGROUP_PROBE), "entry_point": "main"}
    )
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": 0, "resource": {"buffer": result, "offset": 0, "size": 16}}],
    )
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(1)
    work.end()
    device.queue.submit([encoder.finish()])
    return int(device.queue.read_buffer(result).cast("I")[0])
