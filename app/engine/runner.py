"""Runs programs with raw calls: one pass and one submit a step (spec: wgpu §2, §5, §6).

The only file beside ``shaders`` that calls the native library directly. What would abort the process there is made
unreachable: handles come from a Program that keeps them alive, a program whose buffers were freed is
refused, Finish goes through the checked call, a lost or closed device is refused before any raw call,
and a staging buffer is mapped only by the Ticket that owns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import wgpu
import wgpu.backends.wgpu_native as native
from numpy.typing import NDArray

from app.core.errors import DeviceLost, GpuError
from app.engine.device import Gpu
from app.engine.memory import Allocator, Region, Slice
from app.engine.program import Program

lib: Any = native.lib  # pyright: ignore[reportAttributeAccessIssue]
ffi: Any = native.ffi  # pyright: ignore[reportAttributeAccessIssue]
_checked: Any = native._api.libf  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
_MAP_READ = 1
_SUCCESS = 1
_SMALLEST_STAGING = 4096

Copy = tuple[Slice, int]
"""A slice to read back and how many of its bytes."""


class Staging:
    """A buffer for read-backs, used by one ticket at a time."""

    def __init__(self, allocator: Allocator, size: int) -> None:
        self.buffer = allocator.staging(size)
        self.size = self.buffer.size
        self.status = ffi.new("int *", 0)
        self._callback = ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", self._mapped)
        self.info = ffi.new("WGPUBufferMapCallbackInfo *")
        self.info.mode = lib.WGPUCallbackMode_AllowSpontaneous
        self.info.callback = self._callback

    def _mapped(self, status: int, _message: Any, _a: Any, _b: Any) -> None:
        self.status[0] = status


class Ticket:
    """A submitted step. ``wait`` returns what it copied out, once."""

    def __init__(self, runner: Runner, index: Any, staging: Staging, size: int, kept: list[Program]) -> None:
        self._runner = runner
        self._index = index
        self._staging = staging
        self._size = size
        self._kept = kept

    def wait(self) -> NDArray[np.uint8]:
        """Blocks, the interpreter lock released, until the step has ended."""
        data = self._runner.collect(self._index, self._staging, self._size)
        self._kept.clear()
        return data


class Runner:
    """Encodes and submits programs on one GPU; owned by the engine's thread."""

    def __init__(self, gpu: Gpu, allocator: Allocator) -> None:
        self._gpu = gpu
        self._allocator = allocator
        self._idle: list[Staging] = []

    def write(self, target: Slice, data: NDArray[Any], offset: int = 0) -> None:
        """Writes before the next submit; ``data`` has a whole number of 32-bit words."""
        self._gpu.check()
        raw = np.ascontiguousarray(data)
        pointer = ffi.from_buffer(raw)
        lib.wgpuQueueWriteBuffer(
            self._gpu.device.queue._internal,
            target.buffer._internal,
            target.offset + offset,
            pointer,
            raw.nbytes,
        )

    def run(self, programs: Sequence[Program], copies: Sequence[Copy] = ()) -> NDArray[np.uint8]:
        """Runs programs one after another in one submit and returns the copied bytes, joined."""
        return self.submit(self.encode(programs, copies)).wait()

    def copy(self, pairs: Sequence[tuple[Region, Region]]) -> None:
        """Copies from the first to the second of each pair, and waits; offsets and sizes are whole words."""
        self._gpu.check()
        staging = self._staging(4)
        encoder = lib.wgpuDeviceCreateCommandEncoder(self._gpu.device._internal, ffi.NULL)
        for source, target in pairs:
            lib.wgpuCommandEncoderCopyBufferToBuffer(
                encoder,
                source.slice.buffer._internal,
                source.slice.offset + source.offset,
                target.slice.buffer._internal,
                target.slice.offset + target.offset,
                source.size,
            )
        self.submit(Encoded(self._finish(encoder), staging, 0, [])).wait()

    def encode(self, programs: Sequence[Program], copies: Sequence[Copy] = ()) -> Encoded:
        """Records a step without starting it."""
        self._gpu.check()
        size = max(sum(count for _, count in copies), 4)
        staging = self._staging(size)
        encoder = lib.wgpuDeviceCreateCommandEncoder(self._gpu.device._internal, ffi.NULL)
        _record(encoder, programs)
        _copy_out(encoder, copies, staging)
        commands = self._finish(encoder)
        return Encoded(commands, staging, size if copies else 0, list(programs))

    def start(self, program: Program, clock: Any, first: int) -> None:
        """Submits a program; the GPU writes when it began to query ``first`` of ``clock``, its end to the next.

        The caller keeps the program until the queries were read.
        """
        self._gpu.check()
        encoder = lib.wgpuDeviceCreateCommandEncoder(self._gpu.device._internal, ffi.NULL)
        writes = ffi.new("WGPUPassTimestampWrites *")
        writes.querySet = clock._internal
        writes.beginningOfPassWriteIndex, writes.endOfPassWriteIndex = first, first + 1
        timed = ffi.new("WGPUComputePassDescriptor *")
        timed.timestampWrites = writes
        _record(encoder, [program], timed)
        self._enqueue(lambda: self._finish(encoder), [program])

    def _finish(self, encoder: Any) -> Any:
        try:
            return _checked.wgpuCommandEncoderFinish(encoder, ffi.NULL)
        except (wgpu.GPUError, RuntimeError) as error:
            raise GpuError(f"{self._gpu.info.name} refused a step: {error}", "Start the model again.") from error
        finally:
            lib.wgpuCommandEncoderRelease(encoder)

    def submit(self, encoded: Encoded) -> Ticket:
        """Starts a recorded step; a recording is good for one submit."""
        index, staging = self._enqueue(encoded.take, encoded.programs), encoded.staging
        staging.status[0] = 0
        lib.wgpuBufferMapAsync(staging.buffer._internal, _MAP_READ, 0, staging.size, staging.info[0])
        return Ticket(self, index, staging, encoded.size, encoded.programs)

    def _enqueue(self, take: Callable[[], Any], programs: Sequence[Program]) -> Any:
        self._gpu.check()
        if any(owner.freed for program in programs for owner in program.owners):
            raise GpuError("A step used memory that was given back.", "Start the model again.")
        array = ffi.new("WGPUCommandBuffer[1]", [take()])
        queue = self._gpu.device.queue._internal
        index = ffi.new("WGPUSubmissionIndex *", lib.wgpuQueueSubmitForIndex(queue, 1, array))
        lib.wgpuCommandBufferRelease(array[0])
        return index

    def discard(self, encoded: Encoded) -> None:
        """Gives back a recording that will not be submitted."""
        lib.wgpuCommandBufferRelease(encoded.take())
        self._idle.append(encoded.staging)

    def collect(self, index: Any, staging: Staging, size: int) -> NDArray[np.uint8]:
        self._gpu.check()
        while not staging.status[0]:
            lib.wgpuDevicePoll(self._gpu.device._internal, 1, index)
        if staging.status[0] != _SUCCESS:
            self._gpu.mark_lost()
            raise DeviceLost(f"{self._gpu.info.name} stopped working.", "Start the model again.")
        handle = staging.buffer._internal
        view = ffi.buffer(lib.wgpuBufferGetConstMappedRange(handle, 0, staging.size), size) if size else b""
        data = np.frombuffer(bytes(view), np.uint8)
        lib.wgpuBufferUnmap(handle)
        self._idle.append(staging)
        return data

    def _staging(self, size: int) -> Staging:
        """Sizes are powers of two, so that reads which grow with a conversation share few buffers."""
        size = max(1 << (size - 1).bit_length(), _SMALLEST_STAGING)
        for i, staging in enumerate(self._idle):
            if size <= staging.size <= 4 * size:
                return self._idle.pop(i)
        return Staging(self._allocator, size)


class Encoded:
    """A recorded step that has not started."""

    def __init__(self, commands: Any, staging: Staging, size: int, programs: list[Program]) -> None:
        self._commands = commands
        self.staging = staging
        self.size = size
        self.programs = programs

    def take(self) -> Any:
        """The command buffer, once: submitting it twice would abort the process."""
        if self._commands is None:
            raise GpuError("A step was submitted twice.", "This is a fault of the program; please report it.")
        commands, self._commands = self._commands, None
        return commands


def _record(encoder: Any, programs: Sequence[Program], timed: Any = ffi.NULL) -> None:
    compute = lib.wgpuCommandEncoderBeginComputePass(encoder, timed)
    set_pipeline, set_group = lib.wgpuComputePassEncoderSetPipeline, lib.wgpuComputePassEncoderSetBindGroup
    dispatch, null, last = lib.wgpuComputePassEncoderDispatchWorkgroups, ffi.NULL, None
    for program in programs:
        for pipeline, group, x, y, z in program.launches:
            if pipeline is not last:
                set_pipeline(compute, pipeline)
                last = pipeline
            set_group(compute, 0, group, 0, null)
            dispatch(compute, x, y, z)
    lib.wgpuComputePassEncoderEnd(compute)
    lib.wgpuComputePassEncoderRelease(compute)


def _copy_out(encoder: Any, copies: Sequence[Copy], staging: Staging) -> None:
    place = 0
    for source, count in copies:
        lib.wgpuCommandEncoderCopyBufferToBuffer(
            encoder, source.buffer._internal, source.offset, staging.buffer._internal, place, count
        )
        place += count
