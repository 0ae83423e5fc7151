"""The whole program once: it shows its window, and ends within five seconds of its closing with code 0."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CLOSES_ITSELF = """
import sys, time
from PySide6.QtCore import QTimer
from app.ui import application
from app.ui.window import MainWindow

began = [0.0]

def close(window):
    began[0] = time.monotonic()
    window.close()

set_device = MainWindow.set_device

def when_ready(window, device):
    set_device(window, device)
    QTimer.singleShot({after}, lambda: close(window))

{when}
code = application.run()
print("ended in", time.monotonic() - began[0])
sys.exit(code)
"""
READY = "MainWindow.set_device = when_ready"
AT_ONCE = """
show = MainWindow.show
MainWindow.show = lambda window: (show(window), QTimer.singleShot(0, lambda: close(window)))
"""


def run(when: str, home: Path) -> float:
    """Seconds from closing to the end."""
    script = CLOSES_ITSELF.format(after=50, when=when)
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "POOLED_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return float(done.stdout.split()[-1])


def test_closing_ends_everything(tmp_path: Path) -> None:
    assert run(READY, tmp_path) < 5


def test_closing_while_the_gpu_is_still_looked_at_ends_everything(tmp_path: Path) -> None:
    assert run(AT_ONCE, tmp_path) < 5
