"""The API page, from made-up values: what it says, what can be copied, what is wished."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from app.room.intents import ChangeSettings, Disconnect
from app.room.state import RoomState
from app.serve.settings_for_tools import settings_for_tools
from app.serve.status import Phase, ServeStatus
from app.ui.api_view import ApiView, ApiWish
from app.ui.gallery import DONE, ROOM, scenes
from app.ui.gallery_pages import ANSWERING, BUSY, CONNECTED, ON, PROGRAM
from app.ui.sheets.api import NO_MODEL, TURNED_AWAY, ApiSheet, note
from app.ui.sheets.api_tools import NO_MODEL as NOTHING_YET
from app.ui.widgets.button import Button
from app.ui.widgets.copy_button import CopyButton
from app.ui.widgets.switch import Switch
from app.ui.window import MainWindow

Stage = Callable[..., MainWindow]
SCENES = scenes()


@pytest.fixture
def sheet(qtbot: QtBot) -> ApiSheet:
    made = ApiSheet()
    qtbot.addWidget(made)
    made.wishes = []  # pyright: ignore[reportAttributeAccessIssue]
    made.wished.connect(made.wishes.append)  # pyright: ignore[reportAttributeAccessIssue]
    return made


def shown(sheet: ApiSheet) -> list[str]:
    return [each.text() for each in sheet.findChildren(QLabel) if each.isVisibleTo(sheet) and each.text()]


def copied(sheet: ApiSheet) -> list[str]:
    return [each.copies for each in sheet.findChildren(CopyButton) if each.isVisibleTo(sheet)]


def test_off_there_is_only_a_switch_and_its_door(sheet: ApiSheet) -> None:
    sheet.display(ApiView(), RoomState())
    assert copied(sheet) == []
    sheet.switch.click()
    assert sheet.wishes == [ApiWish(on=True)]


def test_what_to_paste_is_sized_to_the_model_that_runs(sheet: ApiSheet) -> None:
    sheet.display(CONNECTED, DONE)
    assert CONNECTED.address is not None
    settings = settings_for_tools(CONNECTED.address)
    assert sheet._tools.tabs is not None
    for each in settings:
        sheet._tools.tabs.segments[each.tool].click()
        assert copied(sheet) == [
            "http://127.0.0.1:8080/v1",
            "http://127.0.0.1:8080",
            each.text.rstrip("\n"),
        ]
        assert f"Goes into {each.where}." in shown(sheet)
    assert list(sheet._tools.tabs.segments) == [each.tool for each in settings]


def test_the_chosen_program_stays_when_another_model_runs(sheet: ApiSheet) -> None:
    sheet.display(ON, DONE)
    assert ON.model is not None
    sheet._tools.choose("Codex")
    sheet.display(replace(ON, model=replace(ON.model, key="qwen3-1.7b", context=16384)), DONE)
    assert "model_context_window = 16384" in copied(sheet)[-1]
    sheet.display(replace(ON, model=None), ROOM)
    assert len(copied(sheet)) == 2
    assert NOTHING_YET in shown(sheet)
    sheet.display(ON, DONE)
    assert "model_context_window = 32768" in copied(sheet)[-1]


def test_the_programs_are_listed_with_their_answers(sheet: ApiSheet) -> None:
    sheet.display(ANSWERING, DONE)
    assert {"Claude Code", "3 answers", "OpenAI for Python", "1 answer"} <= set(shown(sheet))


def test_what_is_wrong_is_said_with_what_to_do(sheet: ApiSheet) -> None:
    sheet.display(BUSY, DONE)
    assert {BUSY.trouble, BUSY.remedy} <= set(shown(sheet))
    closed = replace(DONE, settings=replace(DONE.settings, api_clients=False))
    assert note(CONNECTED, closed) == TURNED_AWAY
    assert note(replace(ON, model=None), ROOM) == NO_MODEL
    assert note(ANSWERING, DONE) == "2 requests in line behind it."
    assert note(CONNECTED, DONE) == note(ApiView(), DONE) == ""


@pytest.mark.parametrize(
    ("view", "words", "button"),
    [
        (ApiView(), "Off", "Serve API"),
        (ApiView(ApiWish(on=True)), "Turning on", "Serve API"),
        (ON, "Waiting for a program", "API on"),
        (CONNECTED, "Codex is connected", "API on"),
        (ANSWERING, "Answering Claude Code", "API on"),
        (BUSY, "Port 8080 is used by another program.", "API: not on"),
    ],
)
def test_every_state_has_its_words(view: ApiView, words: str, button: str, stage: Stage) -> None:
    assert (view.words, view.button) == (words, button)
    window = stage(DONE)
    window.offer_api(view)
    window.display(DONE)
    assert window.desk.header.serve.text() == window.desk.plain_header.serve.text() == button
    assert window.desk.header.serve.toolTip() == words


@pytest.mark.parametrize(
    ("typed", "wishes"),
    [("0", [ApiWish(port=0)]), ("9090", [ApiWish(port=9090)]), ("70000", []), ("", []), ("8080", []), ("12ab", None)],
)
def test_a_port_is_taken_once_the_field_is_left(
    typed: str, wishes: list[ApiWish] | None, sheet: ApiSheet, qtbot: QtBot
) -> None:
    sheet.display(ApiView(), RoomState())
    field = sheet._door.port
    field.clear()
    qtbot.keyClicks(field, typed)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert sheet.wishes == (wishes if wishes is not None else [ApiWish(port=12)])
    assert field.text() == str(sheet._door._wish.port)


def test_a_key_is_hidden_until_it_is_asked_for(sheet: ApiSheet, qtbot: QtBot) -> None:
    sheet.display(ApiView(), RoomState())
    door = sheet._door
    qtbot.keyClicks(door.key, 'a "b"\\c')
    sheet.display(ApiView(status=ServeStatus(Phase.WAITING)), RoomState())
    assert door.key.text() == "abc"
    qtbot.keyClick(door.key, Qt.Key.Key_Return)
    assert sheet.wishes == [ApiWish(key="abc")]
    assert door.key.echoMode() is QLineEdit.EchoMode.Password
    door.show_key.click()
    assert door.key.echoMode() is QLineEdit.EchoMode.Normal
    assert "abc" not in repr(ApiWish(key="abc"))


def test_copying_says_so(sheet: ApiSheet) -> None:
    sheet.display(ON, DONE)
    button = sheet.findChildren(CopyButton)[0]
    button.click()
    assert QApplication.clipboard().text() == "http://127.0.0.1:8080/v1"
    assert button.text() == "Copied"


@pytest.mark.parametrize("phase", ["start", "room"])
def test_the_page_is_reached_from_both_headers(phase: str, stage: Stage) -> None:
    window = stage(RoomState() if phase == "start" else DONE)
    header = window.desk.plain_header if phase == "start" else window.desk.header
    header.serve.click()
    assert window.sheets.sheet is not None
    assert isinstance(window.sheets.sheet.content, ApiSheet)


def test_the_page_is_reached_from_the_menu_of_a_narrow_window(stage: Stage) -> None:
    window = stage(SCENES["menu"])
    button = next(b for b in window.findChildren(Button) if b.text() == "Serve API" and b.property("kind") == "item")
    button.click()
    assert window.sheets.sheet is not None
    assert isinstance(window.sheets.sheet.content, ApiSheet)


def test_everything_on_the_page_is_reached_by_tab_and_escape_closes_it(stage: Stage, qtbot: QtBot) -> None:
    window = stage(SCENES["api-connected"])
    overlay = window.sheets.sheet
    assert overlay is not None
    controls = [b for b in (*overlay.findChildren(Button), *overlay.findChildren(Switch)) if b.isVisibleTo(overlay)]
    assert {*controls} <= {*overlay._chain()}
    qtbot.keyClick(overlay, Qt.Key.Key_Escape)
    assert window.sheets.sheet is None


def test_programs_may_ask_as_long_as_the_owner_lets_them(stage: Stage) -> None:
    window = stage(SCENES["settings"])
    switch = next(s for s in window.findChildren(Switch) if s.accessibleName() == "Programs may ask")
    switch.click()
    assert window.sent == [ChangeSettings(replace(ROOM.settings, api_clients=False))]


def test_a_program_of_the_room_is_a_device_that_can_be_put_out(stage: Stage) -> None:
    window = stage(SCENES["device-card-program"])
    card = window.sheets.sheet
    assert card is not None
    texts = [each.text() for each in card.findChildren(QLabel)]
    assert "API client · opencode" in texts
    next(b for b in card.findChildren(Button) if b.text() == "Disconnect").click()
    assert window.sent == [Disconnect(PROGRAM.id)]
