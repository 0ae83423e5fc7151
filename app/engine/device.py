"""One opened GPU: its limits, its compiled pipelines, and what happens when it fails."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import wgpu

from app.core.errors import DeviceLost, GpuError
from app.engine.adapter import AdapterInfo, choose_adapter, describe, full_limits, subgroup_size
from app.engine.placement import Job, Placement, Placements
from app.engine.shaders import shader_module

PipelineKey = tuple[str, tuple[str, ...], tuple[tuple[str, int | float], ...]]
"""WGSL with entry point ``main``, "read" or "write" a binding, and the values of its constants."""

THREADS = min(max((os.cpu_count() or 2) - 1, 1), 8)
"""Threads that work for the one that owns the GPU while it waits for them."""

_WANTED_FEATURES = ("shader-f16", "subgroup", "timestamp-query")


@dataclass(frozen=True)
class Caps:
    """What kernels are rendered for. ``binding`` and ``buffer`` in bytes, ``shared`` bytes of workgroup memory.

    ``subgroup`` threads can shuffle values among each other, 0 where the driver has no such thing.
    ``placements`` were measured on this device.
    """

    binding: int
    buffer: int
    shared: int
    software: bool
    features: frozenset[str]
    subgroup: int = 0
    placements: Placements = field(default_factory=dict[Job, Placement], compare=False, repr=False)


class _LossWatcher(logging.Handler):
    """Hears of a lost device: wgpu tells it only to its log (spec: wgpu §5, field reports B8)."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if "device was lost (" in message and "(Destroyed)" not in message:
            for gpu in list(_open):
                gpu.mark_lost()


_open: weakref.WeakSet[Gpu] = weakref.WeakSet()
logging.getLogger("wgpu").addHandler(_LossWatcher())


class Gpu:
    """A device and its compiled pipelines. One thread owns it."""

    def __init__(self, adapter: Any, device: Any, info: AdapterInfo, caps: Caps) -> None:
        self.adapter = adapter
        self.device = device
        self.info = info
        self.caps = caps
        self._lost = threading.Event()
        self._pipelines: dict[tuple[Any, ...], Any] = {}
        _open.add(self)

    @classmethod
    def open(cls, adapter: Any = None, binding: int | None = None) -> Gpu:
        """Opens ``adapter`` (by default the best one). ``binding`` lowers the binding limit, for tests.

        Raises GpuError when the driver refuses.
        """
        adapter = adapter or choose_adapter()
        info = describe(adapter)
        limits = full_limits(adapter)
        features = [f for f in _WANTED_FEATURES if f in adapter.features]
        try:
            device = adapter.request_device_sync(required_features=features, required_limits=limits)
        except (wgpu.GPUError, RuntimeError) as error:
            raise GpuError(f"{info.name} cannot be opened: {error}", "Update its driver.") from error
        caps = Caps(
            binding=min(binding or info.binding, info.binding, info.buffer),
            buffer=min(binding or info.buffer, info.buffer),
            shared=int(limits["max-compute-workgroup-storage-size"]),
            software=info.software,
            features=frozenset(features),
            subgroup=subgroup_size(device) if "subgroup" in features else 0,
        )
        return cls(adapter, device, info, caps)

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def mark_lost(self) -> None:
        """From now on every use raises DeviceLost; what the device held is gone."""
        self._lost.set()

    def check(self) -> None:
        """Raises DeviceLost once the device is gone: the raw runner must not touch it again."""
        if self.lost:
            raise DeviceLost(
                f"{self.info.name} stopped working.",
                "Start the model again; if it repeats, update the driver.",
            )

    def pipeline(self, key: PipelineKey) -> Any:
        """The compiled kernel. Cached; GpuError if the driver refuses it."""
        if key not in self._pipelines:
            self._pipelines[key] = self._compile(key)
        return self._pipelines[key]

    def prepare(self, keys: Iterable[PipelineKey]) -> None:
        """Compiles in a few threads what ``pipeline`` will be asked for; what a driver refuses, it refuses then."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._pipelines]
        for _, layout, _ in missing:
            self._bind_layout(layout)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="kernels") as pool:
            for key, made in zip(missing, pool.map(self._try_compile, missing), strict=True):
                if made:
                    self._pipelines[key] = made

    def _try_compile(self, key: PipelineKey) -> Any:
        try:
            return self._compile(key)
        except GpuError:
            return None

    def _compile(self, key: PipelineKey) -> Any:
        source, layout, constants = key
        self.check()
        try:
            module = shader_module(self.device, source, self.info.backend)
            return self.device.create_compute_pipeline(
                layout=self.device.create_pipeline_layout(bind_group_layouts=[self._bind_layout(layout)]),
                compute={"module": module, "entry_point": "main", "constants": dict(constants)},
            )
        except wgpu.GPUError as error:
            raise GpuError(f"{self.info.name} refused a kernel: {error}", "Update its driver.") from error

    def _bind_layout(self, layout: tuple[str, ...]) -> Any:
        key = ("layout", layout)
        if key not in self._pipelines:
            kinds = {"read": "read-only-storage", "write": "storage"}
            self._pipelines[key] = self.device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kinds[k]}}
                    for i, k in enumerate(layout)
                ]
            )
        return self._pipelines[key]

    def bind(self, layout: tuple[str, ...], bindings: list[tuple[Any, int, int]]) -> Any:
        """A bind group of (buffer, offset, size) triples in binding order."""
        self.check()
        entries = [
            {"binding": i, "resource": {"buffer": b, "offset": offset, "size": size}}
            for i, (b, offset, size) in enumerate(bindings)
        ]
        return self.device.create_bind_group(layout=self._bind_layout(layout), entries=entries)

    def close(self) -> None:
        """Frees everything; every later use raises DeviceLost."""
        _open.discard(self)
        self._pipelines.clear()
        if not self.lost:
            self.mark_lost()
            self.device.destroy()
