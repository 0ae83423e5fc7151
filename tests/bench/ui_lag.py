"""How long the window's thread is held while an answer of 1,000 tokens streams in: ``python -m tests.bench.ui_lag``."""

from __future__ import annotations

import os
import statistics
import sys
import time
from dataclasses import replace

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.room.state import Phase
from app.ui import highlight, looks
from app.ui.application import SWITCH_INTERVAL_S
from app.ui.fonts import load_fonts
from app.ui.gallery import EMPTY, said
from app.ui.gallery_texts import EVERYTHING, SPLIT
from app.ui.preferences import Look, Preferences
from app.ui.shots import look_of, settle
from app.ui.this_device import ThisDevice
from app.ui.window import MainWindow

TOKENS, PERIOD_MS, CHARS = 1000, 10, 4
FRAME_MS = 16.0


def answer(chars: int) -> str:
    """Prose, lists, tables and code, as long as asked for."""
    part = f"{EVERYTHING}\n{SPLIT}\n"
    return (part * (chars // len(part) + 1))[:chars]


class Stream:
    """Gives the window a token each ``PERIOD_MS`` and measures how late a timer of 1 ms comes."""

    def __init__(self, window: MainWindow) -> None:
        self._window, self._text = window, answer(TOKENS * CHARS)
        self._sent = 0
        self.gaps: list[float] = []
        self._last = time.perf_counter()
        self._tokens = QTimer(window, interval=PERIOD_MS)
        self._tokens.timeout.connect(self._token)
        self._probe = QTimer(window, interval=0)
        self._probe.timeout.connect(self._tick)

    def run(self) -> None:
        self._tokens.start()
        self._probe.start()
        self._last = time.perf_counter()
        QApplication.exec()

    def _tick(self) -> None:
        now = time.perf_counter()
        self.gaps.append((now - self._last) * 1000)
        self._last = now

    def _token(self) -> None:
        self._sent += 1
        text = self._text[: self._sent * CHARS]
        self._window.offer(replace(EMPTY, phase=Phase.ANSWERING, transcript=(said("Tell me all.", text),)))
        if self._sent == TOKENS:
            QApplication.quit()


def main() -> int:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    application = QApplication(sys.argv[:1])
    load_fonts()
    preferences = Preferences("otter", 18, Look.LIGHT)
    looks.apply(application, look_of(preferences))
    window = MainWindow(ThisDevice(), preferences)
    window.show()
    window.display(EMPTY)
    settle(window)
    highlight.prepare().join()
    stream = Stream(window)
    stream.run()
    long = [gap for gap in stream.gaps if gap > FRAME_MS]
    print(f"{TOKENS} tokens of {CHARS} characters, one each {PERIOD_MS} ms, {len(stream.gaps)} turns of the loop")
    print(f"longest hold {max(stream.gaps):.1f} ms, median {statistics.median(stream.gaps):.2f} ms")
    print(f"{len(long)} holds over {FRAME_MS:.0f} ms: {', '.join(f'{gap:.0f}' for gap in sorted(long)[-12:])}")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
