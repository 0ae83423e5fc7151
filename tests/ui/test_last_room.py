"""The last room on the first screen, and going straight back into it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.room.intents import ForgetRoom, Intent, JoinRoom, Reopen
from app.room.state import Offer, RoomState
from app.ui.application import _connect  # pyright: ignore[reportPrivateUsage]
from app.ui.compose import Composed
from app.ui.gallery import CODE, HERE, LINK, scenes
from app.ui.models_view import LookAgain
from app.ui.shots import settle
from app.ui.this_device import ThisDevice
from app.ui.window import MainWindow

Stage = Callable[..., MainWindow]
SCENES = scenes()
OWN = RoomState(offer=Offer(CODE, owner=True))


@pytest.mark.parametrize(("scene", "text"), [("start-again", "Open it again"), ("start-back", "Go back to 4TK-G9P")])
def test_the_last_room_is_offered_and_can_be_forgotten(scene: str, text: str, stage: Stage) -> None:
    window = stage(SCENES[scene])
    last = window.desk.start.last
    assert last.isVisible()
    assert last.back.text() == text
    last.back.click()
    last.forget.click()
    assert window.sent == [Reopen(), ForgetRoom()]
    window.display(RoomState())
    assert not last.isVisible()


def test_it_outlives_a_change_of_the_look_and_waits_for_the_gpu(stage: Stage) -> None:
    window = stage(OWN)
    window.restyle()
    window.set_device(ThisDevice())
    settle(window)
    assert window.desk.start.last.isVisible()
    assert not window.desk.start.last.back.isEnabled()
    window.set_device(HERE)
    assert window.desk.start.last.back.isEnabled()


def test_typing_begins_with_the_code_and_tab_reaches_the_last_room(stage: Stage) -> None:
    window = stage(SCENES["start-again"])
    start = window.desk.start
    assert QApplication.focusWidget() is start.code
    seen: list[object] = []
    for _ in range(30):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        seen.append(QApplication.focusWidget())
    assert start.last.back in seen
    assert seen.index(start.last.forget) - seen.index(start.last.back) in {1, 1 - len(set(seen))}
    start.last.back.setFocus()
    QTest.keyClick(start.last.back, Qt.Key.Key_Space)
    assert window.sent == [Reopen()]


@dataclass
class FakeRoom:
    state: RoomState
    intents: list[Intent] = field(default_factory=list[Intent])

    def subscribe(self, subscriber: Callable[[RoomState], None]) -> Callable[[], None]:
        return lambda: None

    def handle(self, intent: Intent) -> None:
        self.intents.append(intent)


@dataclass
class FakeNearby:
    show: object = None

    def follow(self, state: RoomState) -> None: ...


@dataclass
class FakePage:
    """The API, or the models: begun once the window shows what they tell."""

    show: object = None
    begun: list[object] = field(default_factory=list[object])

    def begin(self) -> None:
        self.begun.append(self.show)


@dataclass
class FakeApplication:
    room: FakeRoom


@dataclass
class FakeComposed:
    application: FakeApplication
    device: ThisDevice = HERE
    nearby: FakeNearby = field(default_factory=FakeNearby)
    shared: list[bool] = field(default_factory=list[bool])
    api: FakePage = field(default_factory=FakePage)
    models: FakePage = field(default_factory=FakePage)
    wishes: list[object] = field(default_factory=list[object])

    def wish(self, wish: object) -> None:
        self.wishes.append(wish)

    def use_relay(self, wish: object) -> None: ...

    def share_weights(self, on: bool) -> None:
        self.shared.append(on)


def connected(window: MainWindow, state: RoomState, link: str = "") -> FakeComposed:
    """The window after a room was put together for it."""
    composed = FakeComposed(FakeApplication(FakeRoom(state)))

    async def compose() -> Composed:
        return cast(Composed, composed)

    async def connect() -> None:
        task = asyncio.create_task(compose())
        await task
        _connect(window, task, link)

    asyncio.run(connect())
    return composed


NOW = RoomState(offer=Offer(CODE, owner=True, straight_back=True))


def test_a_room_of_a_moment_ago_is_gone_back_to_at_once(stage: Stage) -> None:
    assert connected(stage(RoomState()), NOW).application.room.intents == [Reopen()]
    assert connected(stage(RoomState()), OWN).application.room.intents == []


def test_a_link_comes_before_the_last_room(stage: Stage) -> None:
    intents = connected(stage(RoomState()), NOW, LINK).application.room.intents
    assert [type(intent) for intent in intents] == [JoinRoom]


def test_sharing_model_files_is_switched_in_the_settings(
    stage: Stage, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))
    window = stage(RoomState())
    composed = connected(window, RoomState())
    window.sheets.open("settings")
    window.sheets.sharing_wanted.emit(False)
    assert composed.shared == [False]


def test_the_api_and_the_models_are_shown_and_wished_for(stage: Stage) -> None:
    window = stage(OWN)
    composed = connected(window, OWN)
    assert (composed.api.begun, composed.models.begun) == ([window.offer_api], [window.offer_models])
    window.sheets.open("models")
    assert composed.wishes == [LookAgain()]
