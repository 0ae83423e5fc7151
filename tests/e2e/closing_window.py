"""Opens the real window, opens a room in it, closes the window; for ``test_closing``.

Prints one JSON line: threads that were there before the end, and the time the closing began.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.room.intents import OpenRoom
from app.room.state import Phase
from app.ui import application
from app.ui.window import MainWindow
from tests.room.loopback import offer_loopback

LOOK_EVERY_MS = 50
CLOSED: dict[str, object] = {}


class Person:
    """Presses Open a room when the window is ready, and closes the window when the room is there."""

    def __init__(self) -> None:
        self._asked = False
        self._timer = QTimer()
        self._timer.timeout.connect(self._look)
        self._timer.start(LOOK_EVERY_MS)

    def _look(self) -> None:
        window = next((w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow)), None)
        if window is None or not window._device.ready:
            return
        if not self._asked:
            self._asked = True
            window.intent.emit(OpenRoom("otter", 1))
        elif window.state.phase is Phase.ROOM:
            self._timer.stop()
            CLOSED.update(threads=[t.name for t in threading.enumerate()], at=time.time())
            window.close()


def main() -> int:
    offer_loopback()
    load_fonts = application.load_fonts

    def start() -> None:
        load_fonts()
        CLOSED["person"] = Person()

    application.load_fonts = start
    code = application.run()
    CLOSED.pop("person", None)
    # Threads of drivers that once called into Python stay listed as dummies.
    own = (t for t in threading.enumerate() if not isinstance(t, threading._DummyThread))  # type: ignore[attr-defined]
    left = [t.name for t in own if t is not threading.main_thread()]
    print(json.dumps({**CLOSED, "left": left}), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
