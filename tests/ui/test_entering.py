"""The first screen and the door: codes, links, names, Allow and Deny."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from app.room.intents import Allow, BackToStart, Deny, JoinRoom, Leave, OpenRoom
from app.ui.gallery import HERE, KNOCKING, LINK, NEARBY, ROOM, scenes
from app.ui.preferences import Preferences
from app.ui.sheets.allow import AllowDialog
from app.ui.shots import settle
from app.ui.this_device import ThisDevice
from app.ui.widgets.button import Button
from app.ui.widgets.code_field import CodeField
from app.ui.window import MainWindow

Stage = Callable[..., MainWindow]
SCENES = scenes()


def typed(text: str) -> CodeField:
    field = CodeField()
    QTest.keyClicks(field, text)
    return field


@pytest.mark.parametrize("text", ["4TKG9P", "4tk-g9p", "4tk g9p", "4TKG9PXXX", "4.T_K-G9P!"])
def test_a_typed_code_is_taken_however_it_is_written(text: str) -> None:
    field = typed(text)
    assert field.code == "4TKG9P"
    assert field.complete


@pytest.mark.parametrize(("text", "complete"), [("4TKG", True), ("4TKG9", False), ("4TK", False), ("", False)])
def test_codes_have_four_or_six_symbols(text: str, complete: bool) -> None:
    assert typed(text).complete == complete


@pytest.mark.parametrize("text", [LINK, "4tk-g9p", "http://192.168.1.20:7420/r/4TKG9P#k=wYx7P0aVbT9d2Zk1LrQe5A"])
def test_codes_and_links_are_pasted(text: str) -> None:
    field = CodeField()
    QApplication.clipboard().setText(f"  {text}\n")
    QTest.keyClick(field, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert field.code == "4TKG9P"
    assert field.complete


def test_letters_that_no_code_has_are_left_out() -> None:
    assert typed("O0I1LU4TKG9P").code == "4TKG9P"


def test_backspace_takes_one_symbol_or_the_whole_link() -> None:
    field = typed("4TK")
    QTest.keyClick(field, Qt.Key.Key_Backspace)
    assert field.code == "4T"
    field.set_text(LINK)
    QTest.keyClick(field, Qt.Key.Key_Backspace)
    assert field.code == ""


def test_a_pasted_link_is_handed_on_whole_so_that_its_key_is_used(stage: Stage) -> None:
    window = stage(SCENES["start-link"])
    QTest.keyClick(window.desk.start.code, Qt.Key.Key_Return)
    assert window.sent == [JoinRoom(LINK, "otter", 18)]


def test_opening_tells_name_and_memory(stage: Stage) -> None:
    window = stage(SCENES["start"])
    window.desk.start.pledge.set_value(20)
    window.desk.start.open_button.click()
    assert window.sent == [OpenRoom("otter", 20)]


def test_a_device_without_a_gpu_lends_nothing(stage: Stage) -> None:
    window = stage(SCENES["start-no-gpu"])
    window.desk.start.open_button.click()
    assert window.sent == [OpenRoom("otter", 0)]


def test_nothing_can_be_entered_before_the_gpu_was_looked_at(stage: Stage) -> None:
    window = stage(SCENES["start-looking"])
    assert not window.desk.start.open_button.isEnabled()
    window.desk.start.code.set_text("4TKG9P")
    window.set_device(ThisDevice(ready=True, gpu="RTX 4090"))
    assert window.desk.start.code.code == "4TKG9P"
    assert window.desk.start.open_button.isEnabled()
    assert window.desk.start.join_button.isEnabled()


def test_typed_memory_is_brought_into_range(stage: Stage) -> None:
    pledge = stage(SCENES["start"]).desk.start.pledge
    for typed_in, gb in (("200", 64), ("0", 1), ("12,4 GB", 12), ("nonsense", 12)):
        pledge._number.setText(typed_in)  # pyright: ignore[reportPrivateUsage]
        pledge._number.editingFinished.emit()  # pyright: ignore[reportPrivateUsage]
        assert pledge.value == gb


def test_shuffling_gives_another_name(stage: Stage) -> None:
    field = stage(SCENES["start"]).desk.start.name
    field.shuffle.click()
    assert field.name not in {"", "otter"}


@pytest.mark.parametrize(("name", "intent"), [("connecting", Leave()), ("lobby", Leave()), ("error", BackToStart())])
def test_every_way_in_has_a_way_out(name: str, intent: object, stage: Stage) -> None:
    window = stage(SCENES[name])
    QTest.keyClick(window, Qt.Key.Key_Tab)
    screens = {"connecting": window.desk.connecting.cancel, "error": window.desk.trouble.back}
    button = screens.get(name)
    if button is None:
        window.desk.lobby.intent.emit(Leave())
    else:
        button.click()
    assert window.sent == [intent]


def test_a_listed_room_is_knocked_at_without_a_code(stage: Stage) -> None:
    window = stage(SCENES["start-nearby-many"])
    buttons = [b for b in window.desk.start.nearby.findChildren(Button) if b.isVisible()]
    assert [b.accessibleName() for b in buttons] == [f"Knock at {room.name}'s room" for room in NEARBY[:2]]
    buttons[1].click()
    assert [(i.where, i.name) for i in window.sent if isinstance(i, JoinRoom)] == [(NEARBY[1].where, "otter")]
    window.offer_nearby(())
    assert not window.desk.start.nearby.isVisible()


def test_the_list_of_rooms_outlives_a_change_of_the_look(stage: Stage) -> None:
    window = stage(SCENES["start-nearby"])
    window.restyle()
    window.set_device(HERE)
    settle(window)
    assert window.desk.start.nearby.rooms == NEARBY[:1]
    assert window.desk.start.nearby.isVisible()


def test_the_lobby_and_the_door_show_the_same_digits(stage: Stage) -> None:
    lobby = stage(SCENES["lobby"]).desk.lobby
    dialog = door(stage(SCENES["allow"]))
    assert lobby.digits.text() == dialog._digits.text() == "482 907"  # pyright: ignore[reportPrivateUsage]


def door(window: MainWindow) -> AllowDialog:
    assert window.sheets.door is not None
    dialog = window.sheets.door.content
    assert isinstance(dialog, AllowDialog)
    return dialog


def test_allow_and_deny_name_the_one_who_is_shown(stage: Stage) -> None:
    window = stage(SCENES["allow-three"])
    door(window).allow.click()
    window.display(replace(ROOM, waiting=KNOCKING[1:]))
    door(window).deny.click()
    assert window.sent == [Allow("w1"), Deny("w2")]


def test_further_waiters_are_counted(stage: Stage) -> None:
    texts = [label.text() for label in door(stage(SCENES["allow-three"])).findChildren(QLabel)]
    assert "2 more waiting" in texts


def test_the_door_closes_when_nobody_waits_any_more(stage: Stage) -> None:
    window = stage(SCENES["allow"])
    window.display(ROOM)
    settle(window)
    assert window.sheets.door is None


def test_keys_typed_when_the_door_opens_let_nobody_in(stage: Stage) -> None:
    window = stage(SCENES["chat-queue"])
    window.display(replace(window.state, waiting=KNOCKING[:1]))
    settle(window)
    focused = QApplication.focusWidget()
    assert focused is not None
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Escape):
        QTest.keyClick(focused, key)
    assert not any(isinstance(intent, Allow | Deny) for intent in window.sent)
    assert window.sheets.door is not None


def test_an_invite_the_program_was_opened_with_is_followed() -> None:
    window = MainWindow(ThisDevice(ready=True, gpu="RTX 4090"), Preferences(name="otter"))
    intents: list[object] = []
    window.intent.connect(intents.append)
    window.desk.start.follow(LINK)
    assert [type(i) for i in intents] == [JoinRoom]
    assert intents[0].where == LINK
    window.close()
