"""How long the window's thread is held while an answer of 1,000 tokens streams in: ``python -m tests.bench.ui_lag``.

``--idle`` streams nothing, which tells how late this computer makes a loop that has nothing to do. ``--where`` also
lists the costliest events.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.room.state import Phase
from app.ui import highlight, looks
from app.ui.application import SWITCH_INTERVAL_S, keep_what_is_loaded
from app.ui.fonts import load_fonts
from app.ui.gallery import EMPTY, said
from app.ui.gallery_texts import EVERYTHING, SPLIT
from app.ui.preferences import Look, Preferences
from app.ui.shots import look_of, settle
from app.ui.this_device import ThisDevice
from app.ui.window import MainWindow

TOKENS, PERIOD_MS, CHARS = 1000, 10, 4
FRAME_MS = 16.0
SHOWN_EVENTS = 12


@dataclass
class Cost:
    times: int = 0
    total: float = 0.0
    longest: float = 0.0


class Watched(QApplication):
    """Adds up what each kind of event costs, events inside an event included in it."""

    def __init__(self) -> None:
        super().__init__(sys.argv[:1])
        self.costs: dict[str, Cost] = {}

    def notify(self, receiver: QObject, event: QEvent) -> bool:
        kind, began = event.type().name, time.thread_time()
        name = f"{kind} of {type(receiver).__name__} {receiver.objectName()}".strip()
        done = super().notify(receiver, event)
        cost, spent = self.costs.setdefault(name, Cost()), (time.thread_time() - began) * 1000
        cost.times, cost.total, cost.longest = cost.times + 1, cost.total + spent, max(cost.longest, spent)
        return done


def answer(chars: int) -> str:
    """Prose, lists, tables and code, as long as asked for."""
    part = f"{EVERYTHING}\n{SPLIT}\n"
    return (part * (chars // len(part) + 1))[:chars]


class Stream:
    """Gives the window a token each ``PERIOD_MS``, or nothing, and measures every turn of the loop in milliseconds.

    What ``passed`` on the clock and was not ``worked`` by this thread went to other programs and threads. Arrays,
    because a list of a million turns would itself be work for the collector of garbage.
    """

    def __init__(self, window: MainWindow, *, idle: bool) -> None:
        self._window, self._text, self._idle = window, answer(TOKENS * CHARS), idle
        self._sent = 0
        self.passed, self.worked = array("d"), array("d")
        self._last = (0.0, 0.0)
        self._tokens = QTimer(window, interval=PERIOD_MS)
        self._tokens.timeout.connect(self._token)
        self._probe = QTimer(window, interval=0)
        self._probe.timeout.connect(self._tick)

    def run(self) -> None:
        self._tokens.start()
        self._probe.start()
        self._last = (time.perf_counter(), time.thread_time())
        QApplication.exec()

    def _tick(self) -> None:
        now = (time.perf_counter(), time.thread_time())
        self.passed.append((now[0] - self._last[0]) * 1000)
        self.worked.append((now[1] - self._last[1]) * 1000)
        self._last = now

    def _token(self) -> None:
        self._sent += 1
        if not self._idle:
            text = self._text[: self._sent * CHARS]
            self._window.offer(replace(EMPTY, phase=Phase.ANSWERING, transcript=(said("Tell me all.", text),)))
        if self._sent == TOKENS:
            QApplication.quit()


def make_window(application: QApplication) -> MainWindow:
    load_fonts()
    preferences = Preferences("otter", 18, Look.LIGHT)
    looks.apply(application, look_of(preferences))
    window = MainWindow(ThisDevice(), preferences)
    window.show()
    window.display(EMPTY)
    settle(window)
    highlight.prepare().join()
    keep_what_is_loaded()
    return window


def describe(name: str, times: Iterable[float]) -> int:
    """Prints one line; how many were too long."""
    long = sorted(each for each in times if each > FRAME_MS)
    ends = ", ".join(f"{each:.0f}" for each in long[-SHOWN_EVENTS:])
    print(f"{name}: longest {max(times):.1f} ms, {len(long)} over {FRAME_MS:.0f} ms{': ' if long else ''}{ends}")
    return len(long)


def describe_costs(costs: dict[str, Cost]) -> None:
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].longest)[:SHOWN_EVENTS]:
        print(f"  longest {cost.longest:5.1f} ms, all {cost.total:6.0f} ms in {cost.times:5}: {name}")


def main() -> int:
    """The exit code tells of holds by our own work alone."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    idle, where = "--idle" in sys.argv, "--where" in sys.argv
    application = Watched() if where else QApplication(sys.argv[:1])
    window = make_window(application)
    if isinstance(application, Watched):
        application.costs.clear()
    stream = Stream(window, idle=idle)
    stream.run()
    what = "nothing to do" if idle else f"{TOKENS} tokens of {CHARS} characters"
    print(f"{what}, {TOKENS * PERIOD_MS / 1000:.0f} s, {len(stream.passed)} turns of the loop")
    describe("passed on the clock", stream.passed)
    ours = describe("worked by the window's thread", stream.worked)
    busy = [each for each in stream.worked if each > 1]
    if busy:
        print(f"turns that worked over 1 ms: {len(busy)}, median {statistics.median(busy):.1f} ms")
    if isinstance(application, Watched):
        describe_costs(application.costs)
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
