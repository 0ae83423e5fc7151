"""A room changes hands in the window: the owner's button, the heir's question."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.room.intents import AnswerHeir, Disconnect, HandOver
from app.ui.gallery import HERON, ROOM
from app.ui.sheets.confirm import Confirm
from app.ui.sheets.device import DeviceCard
from app.ui.widgets.button import Button


def buttons(card: DeviceCard) -> dict[str, Button]:
    return {button.text(): button for button in card.findChildren(Button)}


def test_the_owner_leaves_the_room_to_a_device_or_puts_it_out(qtbot: Any) -> None:
    card, sent = DeviceCard(HERON.id), list[object]()
    qtbot.addWidget(card)
    card.intent.connect(sent.append)
    card.display(ROOM)
    shown = buttons(card)
    shown["Leave the room to it"].click()
    shown["Disconnect"].click()
    assert sent == [HandOver(HERON.id), Disconnect(HERON.id)]


def test_another_member_owns_nothing_to_give(qtbot: Any) -> None:
    card = DeviceCard(HERON.id)
    qtbot.addWidget(card)
    card.display(replace(ROOM, me="finch"))
    assert not card._owner.isVisibleTo(card)


def test_the_heir_is_asked_and_answers(stage: Any) -> None:
    window = stage(replace(ROOM, me="heron"))
    window.display(replace(ROOM, me="heron", heir_wanted=True))
    question = window.findChild(Confirm)
    assert question is not None
    question.no.click()
    assert window.sent[-1] == AnswerHeir(yes=False)
    window.display(replace(ROOM, me="heron"))
    window.display(replace(ROOM, me="heron", heir_wanted=True))
    window.findChildren(Confirm)[-1].yes.click()
    assert window.sent[-1] == AnswerHeir(yes=True)
