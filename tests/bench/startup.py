"""From the start of the process to the first paint of the window, median of five: ``python -m tests.bench.startup``.

Like an installed program, ours finds its modules compiled: a first, uncounted start compiles them into a folder of
its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STARTS = 5
GOAL_S = 1.2
ROOT = Path(__file__).parents[2]
SCRIPT = """
import time
from app.ui import application
from app.ui.first_paint import FirstPaint
from app.ui.holds import HoldWatcher
from app.ui.window import MainWindow

show, set_device, watchers = MainWindow.show, MainWindow.set_device, []

def shown(window):
    first = FirstPaint(window.desk)
    first.done.connect(lambda: print(time.time()))
    first.done.connect(lambda: watchers.append(HoldWatcher(window)))
    show(window)

def ready(window, device):
    set_device(window, device)
    print(time.time())
    print(max(watchers[0].holds, default=0.0), flush=True)
    window.close()

MainWindow.show, MainWindow.set_device = shown, ready
application.run()
"""


def start(folder: str) -> tuple[float, float, float]:
    """Seconds to the first paint, seconds until the room is ready, and the longest hold between the two."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "POOLED_HOME": folder}
    environment |= {"PYTHONPYCACHEPREFIX": f"{folder}/compiled", "PYTHONDONTWRITEBYTECODE": ""}
    began = time.time()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    painted, ready, hold = (float(line) for line in done.stdout.split())
    return painted - began, ready - began, hold


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        start(folder)
        starts = [start(folder) for _ in range(STARTS)]
    painted, ready, hold = (statistics.median(each) for each in zip(*starts, strict=True))
    print(f"first paint after {painted:.2f} s: {', '.join(f'{each[0]:.2f}' for each in starts)}")
    print(f"room ready after {ready:.2f} s, longest hold until then {hold * 1000:.0f} ms")
    return 1 if painted > GOAL_S else 0


if __name__ == "__main__":
    sys.exit(main())
