"""What would abort the process inside the native library is a typed error here, and the process lives.

Each case runs in a process of its own: an abort could not be caught in this one.
"""

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import gc, sys
import numpy as np
from app.core.errors import DeviceLost, GpuError, OutOfMemory
from app.engine.device import Gpu
from app.engine.memory import Allocator, Slice
from app.engine.ops import rmsnorm
from app.engine.ops.matvec import Activations, Norm
from app.engine.program import Dispatch, Kernel, compile_program
from app.engine.runner import Runner

gpu = Gpu.open()
allocator = Allocator(gpu, 64 << 20)
runner = Runner(gpu, allocator)

def norm(target=None):
    x, y, w = (allocator.buffer(512, "test") for _ in range(3))
    runner.write(x, np.ones(128, np.float32)), runner.write(w, np.full(128, 3, np.float32))
    return rmsnorm.dispatch(Activations(x, 128), Activations(y, 128), Norm(w, 128, 0.0), 1), y

def expect(kind, call):
    try:
        call()
    except kind as error:
        print("refused:", error.what)
    else:
        sys.exit("nothing was raised")

launch, y = norm()
program = compile_program(gpu, [launch])
"""

CASES = {
    "collected handles": """
        program.dispatches.clear()
        del launch
        gc.collect()
        print("value", runner.run([program], [(y, 4)]).view(np.float32)[0])
    """,
    "a step after the device was closed": """
        encoded = runner.encode([program], [(y, 4)])
        gpu.close()
        expect(DeviceLost, lambda: runner.submit(encoded))
        expect(DeviceLost, lambda: runner.run([program]))
        expect(DeviceLost, lambda: runner.write(y, np.ones(4, np.float32)))
        expect(DeviceLost, lambda: allocator.buffer(64, "test"))
    """,
    "a device that is lost while a step is ready": """
        import logging
        encoded = runner.encode([program], [(y, 4)])
        logging.getLogger("wgpu").error("The WGPU device was lost (Unknown):\\ngone")
        expect(DeviceLost, lambda: runner.submit(encoded))
        expect(DeviceLost, lambda: compile_program(gpu, [launch]))
        gpu = Gpu.open()
        allocator = Allocator(gpu, 64 << 20)
        runner = Runner(gpu, allocator)
        launch, y = norm()
        program = compile_program(gpu, [launch])
        print("value", runner.run([program], [(y, 4)]).view(np.float32)[0])
    """,
    "a step submitted twice": """
        encoded = runner.encode([program], [(y, 4)])
        runner.submit(encoded).wait()
        expect(GpuError, lambda: runner.submit(encoded))
        print("value", runner.run([program], [(y, 4)]).view(np.float32)[0])
    """,
    "an invalid command buffer": """
        too_far = Slice(y.buffer, 0, 512, allocator)
        expect(GpuError, lambda: runner.encode([program], [(too_far, 1 << 20)]))
        print("value", runner.run([program], [(y, 4)]).view(np.float32)[0])
    """,
    "a freed buffer in a program": """
        other = Allocator(gpu, 1 << 20)
        lost = other.buffer(512, "test")
        w = allocator.buffer(512, "test")
        stale = compile_program(gpu, [rmsnorm.dispatch(
            Activations(lost, 128), Activations(y, 128), Norm(w, 128, 0.0), 1)])
        other.free_all()
        expect(GpuError, lambda: runner.run([stale], [(y, 4)]))
        print("value", runner.run([program], [(y, 4)]).view(np.float32)[0])
    """,
    "a kernel that does not compile": """
        bad = Dispatch(Kernel("fn main( {", ("write",)), (y,), (1, 1, 1))
        expect(GpuError, lambda: compile_program(gpu, [bad]))
        print("value", runner.run([program], [(y, 4)]).view(np.float32)[0])
    """,
    "more memory than was lent": """
        expect(OutOfMemory, lambda: allocator.buffer(65 << 20, "test"))
        print("value", runner.run([program], [(y, 4)]).view(np.float32)[0])
    """,
    "more memory than there can be": """
        huge = Allocator(gpu, 1 << 60)
        expect(OutOfMemory, lambda: huge.chunk(1 << 40, "test"))
        print("value", runner.run([program], [(y, 4)]).view(np.float32)[0])
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_the_process_lives(case: str) -> None:
    code = PRELUDE + textwrap.dedent(CASES[case]) + "\nprint('alive')\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "alive"
    for line in done.stdout.splitlines():
        if line.startswith("value"):
            assert line == "value 3.0"
