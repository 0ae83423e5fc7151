"""What is loaded behind the window waits for the window."""

from __future__ import annotations

import asyncio

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.ui import application, first_paint
from app.ui.desk import BEFORE_ROOM, IN_ROOM, Desk
from app.ui.first_paint import FirstPaint
from app.ui.preferences import Preferences
from app.ui.this_device import ThisDevice


def test_the_first_paint_is_told_once(qtbot: QtBot) -> None:
    widget, told = QWidget(), list[bool]()
    qtbot.addWidget(widget)
    FirstPaint(widget).done.connect(lambda: told.append(widget.isVisible()))
    qtbot.wait(20)
    assert told == []
    widget.show()
    qtbot.waitUntil(lambda: bool(told))
    widget.repaint()
    qtbot.wait(20)
    assert told == [True]


def test_a_window_out_of_sight_waits_no_longer_than_a_while(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_paint, "AT_LATEST_MS", 10)
    widget = QWidget()
    qtbot.addWidget(widget)
    with qtbot.waitSignal(FirstPaint(widget).done, timeout=2000):
        pass
    assert not widget.isVisible()


def test_the_start_screen_waits_for_no_screen_of_a_room(qtbot: QtBot) -> None:
    desk = Desk(ThisDevice(), Preferences("otter", 18))
    qtbot.addWidget(desk)
    assert vars(desk).keys().isdisjoint({*BEFORE_ROOM, *IN_ROOM})
    for _made in desk.prepare():
        pass
    assert vars(desk).keys() >= {*BEFORE_ROOM, *IN_ROOM}


@pytest.mark.parametrize("closes", [True, False])
async def test_no_room_is_built_for_a_closed_window(closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, built = asyncio.Event(), object()

    async def compose() -> object:
        return built

    def load() -> object:
        if closes:
            closed.set()
        return compose

    monkeypatch.setattr(application, "_load_room", load)
    composed = await application._compose(closed)  # pyright: ignore[reportPrivateUsage]
    assert composed is (None if closes else built)
