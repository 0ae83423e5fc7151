"""A window without a screen, in the gallery's made-up states."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSize
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.room.state import RoomState
from app.ui import highlight, looks, theme
from app.ui.fonts import load_fonts
from app.ui.gallery import Scene
from app.ui.preferences import Look, Preferences
from app.ui.shots import SIZES, look_of, staged
from app.ui.window import MainWindow

PREFERENCES = Preferences("otter", 18, Look.LIGHT)


@pytest.fixture(scope="session", autouse=True)
def _fonts(qapp: QApplication) -> None:
    load_fonts()
    highlight.prepare().join()
    looks.apply(qapp, look_of(PREFERENCES))


@pytest.fixture
def stage(qapp: QApplication, qtbot: QtBot) -> Iterator[Callable[..., MainWindow]]:
    """Shows a scene or state in a window; all windows are gone afterwards."""
    windows: list[MainWindow] = []

    def show(scene: Scene | RoomState, size: QSize = SIZES[""], preferences: Preferences = PREFERENCES) -> MainWindow:
        if theme.current() != look_of(preferences):
            looks.apply(qapp, look_of(preferences))
        shown = staged(scene if isinstance(scene, Scene) else Scene(scene), size, preferences)
        shown.sent = []  # pyright: ignore[reportAttributeAccessIssue]
        shown.intent.connect(shown.sent.append)  # pyright: ignore[reportAttributeAccessIssue]
        windows.append(shown)
        return shown

    yield show
    for window in filter(isValid, windows):
        window.close()
        window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
