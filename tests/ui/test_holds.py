"""The watcher for developers sees what holds the window."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.ui.holds import HoldWatcher


def test_a_long_hold_is_noticed(qtbot: QtBot) -> None:
    parent = QObject()
    watcher = HoldWatcher(parent)
    qtbot.wait(30)
    watcher.holds.clear()
    time.sleep(0.08)
    qtbot.wait(20)
    assert max(watcher.holds) > 0.05
