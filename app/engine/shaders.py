"""Compiles WGSL without the checks that the library adds for shaders of strangers.

A bound on every loop keeps the compiler from unrolling it: prompt attention took 1.5 times as long
(docs/benchmarks.md). Every loop here ends, whatever it reads. Checks of indices stay, but for Vulkan: there the
driver itself keeps buffer accesses inside their bindings, and what is left are workgroup arrays, whose sizes
these kernels choose.
"""

from __future__ import annotations

from typing import Any

import wgpu.backends.wgpu_native as native

_lib: Any = native.lib  # pyright: ignore[reportAttributeAccessIssue]
_ffi: Any = native.ffi  # pyright: ignore[reportAttributeAccessIssue]
_api: Any = native._api  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
_NO_CHECKS, _INDICES = 0, 1


def shader_module(device: Any, source: str, backend: str) -> Any:
    """A module of our own ``source``; wgpu.GPUError if the driver refuses it."""
    text = source.encode()
    code = _ffi.new("char[]", text)
    chained = _ffi.new("WGPUShaderSourceWGSL *")
    chained.chain.sType = _lib.WGPUSType_ShaderSourceWGSL
    chained.code.data, chained.code.length = code, len(text)
    described = _ffi.new("WGPUShaderModuleDescriptor *")
    described.nextInChain = _ffi.cast("WGPUChainedStruct *", chained)
    checks = _NO_CHECKS if backend == "Vulkan" else _INDICES
    handle = _api.libf.wgpuDeviceCreateShaderModuleTrusted(device._internal, described, checks)
    return _api.GPUShaderModule("", handle, device)
