"""Asking: what the button does, what streams, what the keyboard reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QTextEdit, QWidget

from app.prompt.chat import QUESTION_CHARS
from app.room.intents import Ask, ChooseModel, Continue, NewChat, Redeal, Regenerate, Start, Stop, Typing
from app.room.state import Phase, RoomState
from app.ui.gallery import ANSWERING, DONE, EMPTY, ONLINE, ROOM, said, scenes
from app.ui.shots import settle
from app.ui.widgets.button import Button
from app.ui.widgets.composer import Action, offer
from app.ui.widgets.exchange_view import ExchangeView
from app.ui.widgets.overlay import Overlay
from app.ui.window import MainWindow

Stage = Callable[..., MainWindow]
SCENES = scenes()
FOREIGN = replace(ANSWERING, me="finch", creator="otter", model_host="otter")


@pytest.mark.parametrize(
    ("state", "text", "action", "enabled"),
    [
        (EMPTY, "", Action.SEND, False),
        (EMPTY, "Why?", Action.SEND, True),
        (EMPTY, "  \n", Action.SEND, False),
        (EMPTY, "x" * (QUESTION_CHARS + 1), Action.SEND, False),
        (ANSWERING, "", Action.STOP, True),
        (ANSWERING, "Why?", Action.QUEUE, True),
        (FOREIGN, "", Action.QUEUE, False),
        (FOREIGN, "Why?", Action.QUEUE, True),
        (replace(ANSWERING, phase=Phase.HELD), "", Action.STOP, True),
        (replace(DONE, phase=Phase.DEGRADED), "Why?", Action.SEND, False),
        (replace(DONE, phase=Phase.REDEALING), "Why?", Action.SEND, False),
        (replace(DONE, phase=Phase.RECONNECTING), "Why?", Action.SEND, False),
    ],
)
def test_the_button_follows_the_state(state: RoomState, text: str, action: Action, enabled: bool) -> None:
    now = offer(state, text)
    assert (now.action, now.enabled) == (action, enabled)


def asked(window: MainWindow) -> list[object]:
    return [intent for intent in window.sent if not isinstance(intent, Typing)]


def test_enter_sends_and_shift_enter_breaks_the_line(stage: Stage) -> None:
    window = stage(EMPTY)
    box = window.desk.chat.composer.box
    QTest.keyClicks(box, "Why")
    QTest.keyClick(box, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(box, "so?")
    assert asked(window) == []
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert asked(window) == [Ask("Why\nso?")]
    assert box.toPlainText() == ""
    assert Typing() in window.sent


def test_escape_stops_the_answer_and_keeps_the_draft(stage: Stage) -> None:
    window = stage(SCENES["chat-queue"])
    QTest.keyClick(window.desk.chat.composer.box, Qt.Key.Key_Escape)
    assert asked(window) == [Stop()]
    assert window.desk.draft


def test_the_button_stops_or_queues(stage: Stage) -> None:
    window = stage(SCENES["chat-answering"])
    composer = window.desk.chat.composer
    composer.button.click()
    composer.box.setPlainText("Next?")
    composer.button.click()
    assert asked(window) == [Stop(), Ask("Next?")]


def buttons(window: MainWindow, text: str) -> list[Button]:
    return [b for b in window.findChildren(Button) if b.text() == text and b.isVisibleTo(window)]


@pytest.mark.parametrize(
    ("scene", "text", "intent"),
    [
        ("chat-capped", "Continue", Continue()),
        ("chat-done", "Answer again", Regenerate()),
        ("chat-done", "New chat", NewChat()),
        ("degraded", "Deal again", Redeal()),
        ("held", "Stop the answer", Stop()),
        ("model", "Start", Start()),
    ],
)
def test_buttons_send_their_intent(scene: str, text: str, intent: object, stage: Stage) -> None:
    window = stage(SCENES[scene])
    (button,) = buttons(window, text)
    button.click()
    assert asked(window) == [intent]


def test_continue_is_offered_only_for_a_capped_answer(stage: Stage) -> None:
    assert buttons(stage(SCENES["chat-done"]), "Continue") == []
    assert buttons(stage(SCENES["chat-failed"]), "Continue") == []


def test_start_is_closed_while_the_model_does_not_fit(stage: Stage) -> None:
    (start,) = buttons(stage(SCENES["model-short"]), "Start")
    assert not start.isEnabled()


def test_arrow_keys_choose_the_model(stage: Stage) -> None:
    window = stage(ROOM)
    options = list(window.desk.model._picker._options.values())  # pyright: ignore[reportPrivateUsage]
    options[2].setFocus()
    QTest.keyClick(options[2], Qt.Key.Key_Down)
    assert options[3].isChecked()
    assert window.sent == [ChooseModel("qwen3.8-27b")]


def test_a_growing_answer_keeps_its_settled_blocks(stage: Stage) -> None:
    text = "One.\n\nTwo.\n\n```py\na = 1\n```\n\nThree"
    window = stage(replace(ONLINE, phase=Phase.ANSWERING, transcript=(said("Q", text[:8]),)))
    (view,) = window.findChildren(ExchangeView)
    column = view._answer._column  # pyright: ignore[reportPrivateUsage]
    first = column.itemAt(0).widget()
    for end in range(9, len(text) + 1):
        window.display(replace(window.state, transcript=(said("Q", text[:end]),)))
        settle(window)
    assert column.count() == 4
    assert column.itemAt(0).widget() is first


def test_a_shower_of_states_shows_the_last_one(stage: Stage, qtbot: object) -> None:
    window = stage(EMPTY)
    for n in range(200):
        window.offer(replace(EMPTY, phase=Phase.ANSWERING, transcript=(said("Q", "word " * n),)))
    QTest.qWait(120)
    settle(window)
    (view,) = window.findChildren(ExchangeView)
    assert view.exchange is not None
    assert view.exchange.answer == "word " * 199


def focused() -> QWidget:
    widget = QApplication.focusWidget()
    assert widget is not None
    return widget


def walk(window: MainWindow, most: int = 60) -> list[QWidget]:
    """Everything Tab reaches, once around."""
    found: list[QWidget] = []
    for _ in range(most):
        QTest.keyClick(focused(), Qt.Key.Key_Tab)
        if focused() in found:
            return found
        found.append(focused())
    raise AssertionError("Tab never comes back")


def test_tab_reaches_all_of_the_start_screen(stage: Stage) -> None:
    window = stage(SCENES["start-link"])
    window.activateWindow()
    start = window.desk.start
    reached = walk(window)
    for wanted in (start.code, start.open_button, start.join_button, start.name.shuffle):
        assert wanted in reached
    assert sum(isinstance(widget, QLineEdit) for widget in reached) == 2


def test_tab_reaches_all_of_the_chat_and_the_focus_is_seen(stage: Stage) -> None:
    window = stage(SCENES["chat-done"])
    reached = walk(window)
    chat = window.desk.chat
    for wanted in (chat.composer.box, chat.side.new_chat, window.desk.header.invite, window.desk.header.code):
        assert wanted in reached
    window.desk.header.invite.setFocus(Qt.FocusReason.TabFocusReason)
    assert window.ring.isVisible()
    assert window.ring.geometry().contains(window.desk.header.invite.geometry())
    chat.composer.box.setFocus()
    assert not window.ring.isVisible()
    assert isinstance(focused(), QTextEdit)


def test_a_sheet_keeps_tab_inside_and_gives_the_focus_back(stage: Stage) -> None:
    window = stage(SCENES["chat-done"])
    invite = window.desk.header.invite
    invite.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(invite, Qt.Key.Key_Space)
    settle(window)
    sheet = window.sheets.sheet
    assert isinstance(sheet, Overlay)
    for _ in range(8):
        QTest.keyClick(focused(), Qt.Key.Key_Tab)
        assert sheet.isAncestorOf(focused())
    QTest.keyClick(focused(), Qt.Key.Key_Escape)
    settle(window)
    assert window.sheets.sheet is None
    assert focused() is invite
