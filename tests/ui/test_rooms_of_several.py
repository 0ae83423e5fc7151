"""What screens say about paused devices, model hosts elsewhere, expected speed, and the owner's settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtWidgets import QLabel, QWidget

from app.core.settings import RoomDefaults
from app.room.intents import ChangeSettings, PauseLending, Redeal
from app.room.precision import Precision
from app.room.preferences import room_defaults, room_settings
from app.room.settings import RoomSettings
from app.room.state import RoomState
from app.ui.device_words import chip_note, idle
from app.ui.gallery import DONE, HERON, HOSTLESS, OTTER, PAUSED, QUICK, ROOM, WREN, scenes
from app.ui.screens.loading import expected
from app.ui.sheets.device import DeviceCard
from app.ui.widgets.banner import message
from app.ui.widgets.button import Button
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.switch import Switch
from app.ui.window import MainWindow

Stage = Callable[..., MainWindow]
SCENES = scenes()


def texts(widget: QWidget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget)]


def card(window: MainWindow) -> DeviceCard:
    assert window.sheets.sheet is not None
    content = window.sheets.sheet.content
    assert isinstance(content, DeviceCard)
    return content


def test_a_device_is_paused_from_its_card(stage: Stage) -> None:
    window = stage(SCENES["device-card"])
    switch = card(window).findChild(Switch)
    assert isinstance(switch, Switch)
    switch.click()
    assert window.sent == [PauseLending(paused=True)]
    window.display(replace(DONE, devices=PAUSED))
    assert switch.isChecked()
    assert "otter is paused: you need the GPU." in texts(card(window))
    assert "You lend" not in texts(card(window))
    switch.click()
    assert window.sent[1:] == [PauseLending(paused=False)]


def test_others_see_who_is_paused(stage: Stage) -> None:
    shown = texts(card(stage(SCENES["device-card-other-paused"])))
    assert "Paused" in shown
    assert "heron is paused: its owner needs the GPU." in shown
    assert chip_note(PAUSED[1]) == "paused"


def test_whoever_runs_the_model_writes_the_answers(stage: Stage) -> None:
    assert "writes the answers" in texts(card(stage(SCENES["device-card-host"])))


def test_without_its_model_host_nothing_is_dealt_from_here(stage: Stage) -> None:
    told = message(HOSTLESS)
    assert told is not None
    assert told.title == "heron, which runs the model, is gone."
    assert told.act is None
    assert "starts with whoever is here" in told.text
    manual = message(replace(HOSTLESS, settings=RoomSettings(auto_redeal=False)))
    assert manual is not None
    assert "ends" in manual.text
    here = message(replace(HOSTLESS, devices=(OTTER, replace(HERON, away=True))))
    assert here is not None
    assert here.act == Redeal()
    banner = stage(SCENES["waits"]).desk.chat.banner
    assert any(text.startswith("The room is back and waits for") for text in texts(banner))
    assert not [button for button in banner.findChildren(Button) if button.isVisibleTo(banner)]


def test_the_loading_card_says_what_to_expect_and_who_would_slow_it_down(stage: Stage) -> None:
    shown = "\n".join(texts(stage(SCENES["loading-expected"]).desk.loading))
    assert "Expected: about 12 tok/s on 2 devices." in shown
    assert "wren would make it slower." in shown
    assert "lynx is paused: its owner needs the GPU." in shown
    assert expected(SCENES["loading"].state) == ""
    assert idle(replace(WREN, out=None)) == ""


def test_the_chosen_row_has_a_line_for_its_speed(stage: Stage) -> None:
    plain, told = stage(ROOM), stage(replace(ROOM, rows=QUICK))
    rows = [window.desk.model._picker._options[ROOM.chosen] for window in (plain, told)]  # pyright: ignore[reportPrivateUsage]
    assert rows[1].height() > rows[0].height()
    assert rows[1].accessibleDescription() == "about 12 tok/s on 2 devices; 3 would be slower"


CHANGED = RoomSettings(kv="q8", precision=Precision.FULL, checkpoints=4, checkpoints_on_disk=False)


@pytest.mark.parametrize(
    ("name", "pick", "field", "value"),
    [
        ("Memory of the conversation", "q8", "kv", "q8"),
        ("States kept", 4, "checkpoints", 4),
        ("Keep them on disk, too", None, "checkpoints_on_disk", False),
        ("Whole floats between devices", None, "precision", Precision.FULL),
    ],
)
def test_the_owner_sets_how_the_next_start_keeps_and_sends(
    name: str, pick: object, field: str, value: object, stage: Stage
) -> None:
    window = stage(SCENES["settings"])
    controls = [c for c in window.findChildren(QWidget) if c.accessibleName() == name]
    control = controls[0]
    if isinstance(control, Segmented):
        control.chosen.emit(pick)
    else:
        assert isinstance(control, Switch)
        control.click()
    assert window.sent == [ChangeSettings(replace(ROOM.settings, **{field: value}))]


def test_an_unusual_number_of_states_shows_as_the_next_lower_one(stage: Stage) -> None:
    window = stage(replace(ROOM, settings=replace(ROOM.settings, checkpoints=7)))
    window.sheets.open("settings")
    assert window.sent == []


def test_all_settings_of_a_room_are_there_for_the_next_one() -> None:
    assert room_settings(room_defaults(CHANGED)) == CHANGED
    assert room_settings(RoomDefaults()) == RoomSettings()
    assert room_settings(RoomDefaults(kv="q2", hidden="f8")) == RoomSettings()
    assert isinstance(RoomState().settings, RoomSettings)
