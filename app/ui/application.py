"""The program with a window: Qt and asyncio on one loop, a room behind it, and a clean end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication, QIcon, QPixmap
from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

from app.core.log import set_up_logging
from app.room.intents import ChangeSettings, Intent, Reopen
from app.ui import highlight, looks
from app.ui.first_paint import FirstPaint
from app.ui.fonts import load_fonts
from app.ui.holds import HoldWatcher
from app.ui.preferences import read_preferences, write_preferences
from app.ui.this_device import ThisDevice
from app.ui.widgets.mark import mark_picture
from app.ui.window import MainWindow

if TYPE_CHECKING:
    from app.ui.compose import Composed

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.0005
END_WITHIN_S = 4.0
DONE = 0


def run(link: str = "") -> int:
    """Shows the window until it is closed; the exit code. ``link``: an invite to follow at once."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.disable()
    sys.excepthook = _log_unexpected
    application = QApplication(sys.argv[:1])
    application.setApplicationName("Pooled")
    application.setQuitOnLastWindowClosed(False)
    load_fonts()
    application.setWindowIcon(QIcon(QPixmap.fromImage(mark_picture(256))))
    loop = QEventLoop(application)
    asyncio.set_event_loop(loop)
    with loop:
        ended = loop.run_until_complete(_main(application, link))
    if not ended:
        # A thread that does not end would keep the process alive after its window is gone.
        os._exit(DONE)
    return DONE


def _log_unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The border of every Qt slot: what goes wrong in one must not end the program."""
    log.error("something unexpected went wrong in the window", exc_info=(kind, error, trace))


async def _main(application: QApplication, link: str) -> bool:
    """Whether everything ended in time."""
    preferences = read_preferences()
    looks.apply(application, looks.theme_for(preferences))
    window, closed, painted = MainWindow(ThisDevice(), preferences), asyncio.Event(), asyncio.Event()
    window.preferred.connect(write_preferences)
    window.closing.connect(closed.set)
    window.closing.connect(painted.set)
    QGuiApplication.styleHints().colorSchemeChanged.connect(lambda _scheme: window.restyle())
    _close_on_signals(window)
    watcher = HoldWatcher(application) if os.environ.get("POOLED_DEBUG") == "1" else None
    FirstPaint(window.desk).done.connect(painted.set)
    window.show()
    ended = await _serve(window, closed, painted, link)
    highlight.stop()
    del watcher
    window.deleteLater()
    return ended


def _close_on_signals(window: MainWindow) -> None:
    def close(_number: int, _frame: FrameType | None) -> None:
        window.close()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, close)


async def _serve(window: MainWindow, closed: asyncio.Event, painted: asyncio.Event, link: str) -> bool:
    """Builds the room while the window is already there."""
    await painted.wait()
    for _made in window.desk.prepare():
        await asyncio.sleep(0)
    if closed.is_set():
        return True
    composing = asyncio.create_task(_compose(closed), name="compose")
    composing.add_done_callback(lambda task: _connect(window, task, link))
    await closed.wait()
    try:
        async with asyncio.timeout(END_WITHIN_S):
            composed = await composing
            if composed is not None:
                await composed.close()
    except TimeoutError:
        log.warning("not everything ended in time")
        return False
    return True


async def _compose(closed: asyncio.Event) -> Composed | None:
    """None when the window was closed meanwhile."""
    compose = await asyncio.to_thread(_load_room)
    return None if closed.is_set() else await compose()


def _load_room() -> Callable[[], Coroutine[None, None, Composed]]:
    """Loads GPU, network and tokenizer, which takes seconds, so it comes after the first paint and in a thread.

    Logging is set up afterwards, because the GPU library insists on being the first to make its logger.
    """
    from app.ui.compose import compose

    set_up_logging()
    return compose


def _connect(window: MainWindow, task: asyncio.Task[Composed | None], link: str) -> None:
    keep_what_is_loaded()
    if task.cancelled():
        return
    composed = task.result()
    if composed is None:
        return
    room = composed.application.room

    def hand_on(intent: Intent) -> None:
        room.handle(intent)
        if isinstance(intent, ChangeSettings):
            composed.remember(intent.settings)

    window.intent.connect(hand_on)
    window.relay_wanted.connect(composed.use_relay)
    window.sharing_wanted.connect(composed.share_weights)
    room.subscribe(window.offer)
    _connect_pages(window, composed)
    window.set_device(composed.device)
    window.offer(room.state)
    composed.nearby.show = window.offer_nearby
    room.subscribe(composed.nearby.follow)
    composed.nearby.follow(room.state)
    offer = room.state.offer
    if link:
        window.desk.start.follow(link)
    elif offer is not None and offer.straight_back:
        hand_on(Reopen())
    highlight.prepare()


def _connect_pages(window: MainWindow, composed: Composed) -> None:
    """The API and the models beside the room."""
    window.wished.connect(composed.wish)
    composed.api.show, composed.models.show = window.offer_api, window.offer_models
    composed.application.room.subscribe(lambda _state: composed.api.follow())
    composed.api.begin()
    composed.models.begin()


def keep_what_is_loaded() -> None:
    """Code and tables stay to the end: looking through them for garbage holds the window up to a quarter second."""
    gc.freeze()
    gc.enable()
