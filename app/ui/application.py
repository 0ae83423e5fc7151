"""The program with a window: Qt and asyncio on one loop, a room behind it, and a clean end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from types import FrameType, TracebackType

import msgspec
from PySide6.QtGui import QGuiApplication, QIcon, QPixmap
from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

from app.core.settings import load_settings, save_settings
from app.room.intents import ChangeSettings, Intent
from app.room.preferences import room_defaults
from app.ui import highlight, looks
from app.ui.compose import Composed, compose
from app.ui.fonts import load_fonts
from app.ui.holds import HoldWatcher
from app.ui.preferences import read_preferences, write_preferences
from app.ui.this_device import ThisDevice
from app.ui.widgets.mark import mark_picture
from app.ui.window import MainWindow

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.0005
END_WITHIN_S = 4.0
DONE = 0


def run() -> int:
    """Shows the window until it is closed; the exit code."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    sys.excepthook = _log_unexpected
    application = QApplication(sys.argv[:1])
    application.setApplicationName("Pooled")
    application.setQuitOnLastWindowClosed(False)
    load_fonts()
    application.setWindowIcon(QIcon(QPixmap.fromImage(mark_picture(256))))
    loop = QEventLoop(application)
    asyncio.set_event_loop(loop)
    with loop:
        ended = loop.run_until_complete(_main(application))
    if not ended:
        # A thread that does not end would keep the process alive after its window is gone.
        os._exit(DONE)
    return DONE


def _log_unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The border of every Qt slot: what goes wrong in one must not end the program."""
    log.error("something unexpected went wrong in the window", exc_info=(kind, error, trace))


async def _main(application: QApplication) -> bool:
    """Whether everything ended in time."""
    preferences = read_preferences()
    looks.apply(application, looks.theme_for(preferences))
    window, closed = MainWindow(ThisDevice(), preferences), asyncio.Event()
    window.preferred.connect(write_preferences)
    window.closing.connect(closed.set)
    QGuiApplication.styleHints().colorSchemeChanged.connect(lambda _scheme: window.restyle())
    _close_on_signals(window)
    watcher = HoldWatcher(application) if os.environ.get("POOLED_DEBUG") == "1" else None
    window.show()
    highlight.prepare()
    ended = await _serve(window, closed)
    del watcher
    window.deleteLater()
    return ended


def _close_on_signals(window: MainWindow) -> None:
    def close(_number: int, _frame: FrameType | None) -> None:
        window.close()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, close)


async def _serve(window: MainWindow, closed: asyncio.Event) -> bool:
    """Builds the room while the window is already there."""
    composing = asyncio.create_task(compose(), name="compose")
    composing.add_done_callback(lambda task: _connect(window, task))
    await closed.wait()
    try:
        async with asyncio.timeout(END_WITHIN_S):
            await (await composing).close()
    except TimeoutError:
        log.warning("not everything ended in time")
        return False
    return True


def _connect(window: MainWindow, task: asyncio.Task[Composed]) -> None:
    if task.cancelled():
        return
    composed = task.result()
    room = composed.application.room

    def hand_on(intent: Intent) -> None:
        room.handle(intent)
        if isinstance(intent, ChangeSettings):
            save_settings(msgspec.structs.replace(load_settings(), room=room_defaults(intent.settings)))

    window.intent.connect(hand_on)
    room.subscribe(window.offer)
    window.set_device(composed.device)
    window.offer(room.state)
