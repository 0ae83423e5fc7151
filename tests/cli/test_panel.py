"""The room panel: what it shows, and what its keys mean."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from app.cli.amount import Amount
from app.cli.commands import ONLY_ASKS
from app.cli.keys import keys_of
from app.cli.panel import Look, panel
from app.cli.panel_keys import Opens, Pressed, press
from app.cli.panel_room import model_picker
from app.cli.picker import Item, Picker
from app.room import intents as it
from app.room.planner import SplitMode
from app.room.settings import RoomSettings
from app.room.state import Device, Invite, Notice, Phase, RoomState, Speed
from tests.cli.fake_room import HERON, IN_ROOM, KNOCK, ONLINE, OTTER

CHOSEN = replace(IN_ROOM, chosen="starter")
SHORT = replace(IN_ROOM, chosen="large")


def shown(state: RoomState, width: int = 80, **look: object) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(panel(state, Look(width, **look)))  # type: ignore[arg-type]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_room_before_its_start() -> None:
    said = shown(replace(SHORT, devices=(OTTER, HERON), waiting=(KNOCK,)), seconds=65)
    assert "4TK-G9P" in said
    assert "waiting for devices · 2 devices · 1:05" in said
    assert "otter (you)" in said
    assert "? wren wants to join (lends 2 GB, must show 123 456)  a allow, d deny" in said
    assert "Large 27B: 2 GB of 17.8 GB  ━━─" in said
    assert "15.8 GB more needed, download 16.1 GB" in said
    assert "Enter start" in said


def test_a_room_that_is_online() -> None:
    device = replace(OTTER, layers=(1, 30), ms=4.2, wire_ms=1.5, ready=True)
    said = shown(replace(ONLINE, devices=(device,), speed=Speed(tokens_per_second=12.34)))
    assert "Starter 135M is online · 1 device · 0:00 · 12.3 tok/s" in said
    assert "layers 1–30" in said
    assert "4.2 ms a word + 1.5 on the way" in said
    assert "Enter start" not in said


def test_loading_is_shown_for_each_device() -> None:
    said = shown(replace(IN_ROOM, phase=Phase.STARTING, devices=(replace(OTTER, progress=0.5),)))
    assert "loading 50%" in said


@pytest.mark.parametrize("state", [replace(IN_ROOM, devices=(OTTER, replace(HERON, name="h" * 60))), ONLINE])
def test_a_narrow_terminal_wraps_nothing_but_the_link(state: RoomState) -> None:
    said = shown(replace(state, invite=Invite("4TKG9P")), 40)
    assert max(map(len, said.splitlines())) <= 40
    assert "GPU" not in said


def test_a_terminal_without_unicode_gets_no_drawn_lines() -> None:
    assert "━" in shown(SHORT)
    assert not set(shown(SHORT, plain=True)) & set("━─")


def test_nothing_of_a_room_moves_the_cursor() -> None:
    evil = "\x1b[2J\x9b31m\u202ex"
    device = Device("x", evil, gpu=evil)
    state = replace(ONLINE, label=evil, devices=(device,), trouble=evil, notices=(Notice(1, evil),))
    said = shown(replace(state, waiting=(replace(KNOCK, name=evil),)))
    assert not set(said) & set("\x1b\x9b\u202e")


@pytest.mark.parametrize(
    ("key", "state", "pressed"),
    [
        ("enter", CHOSEN, Pressed((it.Start(),))),
        ("enter", SHORT, Pressed(note="Large 27B: 15.8 GB more needed.")),
        ("enter", replace(IN_ROOM, rows=()), Pressed(note="There is no model to start here.")),
        ("enter", ONLINE, Pressed()),
        ("m", CHOSEN, Pressed(opens=Opens.MODELS)),
        ("l", CHOSEN, Pressed(opens=Opens.AMOUNT)),
        ("l", replace(IN_ROOM, devices=(replace(OTTER, holds_layers=False),)), Pressed(note=ONLY_ASKS)),
        ("P", ONLINE, Pressed(opens=Opens.AMOUNT)),
        ("a", replace(IN_ROOM, waiting=(KNOCK,)), Pressed((it.Allow("w"),))),
        ("d", replace(ONLINE, waiting=(KNOCK,)), Pressed((it.Deny("w"),))),
        ("a", IN_ROOM, Pressed(note="Nobody is waiting to be let in.")),
        ("r", ONLINE, Pressed((it.Redeal(),), note="Dealing the layers again.")),
        ("r", IN_ROOM, Pressed()),
        ("i", ONLINE, Pressed(opens=Opens.LINK)),
        ("c", ONLINE, Pressed(opens=Opens.CHAT)),
        ("q", ONLINE, Pressed(opens=Opens.QUIT)),
        ("z", ONLINE, Pressed()),
    ],
)
def test_what_a_key_means(key: str, state: RoomState, pressed: Pressed) -> None:
    assert press(key, state) == pressed


def test_the_split_goes_back_and_forth() -> None:
    other = press("s", IN_ROOM).intents
    spread = replace(RoomSettings(), split=SplitMode.MEMORY)
    assert other == (it.ChangeSettings(spread),)
    assert press("s", replace(IN_ROOM, settings=spread)).intents == (it.ChangeSettings(RoomSettings()),)
    assert press("s", replace(IN_ROOM, creator="h")).intents == ()


def test_keys_have_names() -> None:
    assert keys_of("a\x1b[A\x1b[B\x1bOC\x1b[D\r\n\x7f\x1b") == [
        "a", "up", "down", "right", "left", "enter", "enter", "backspace", "escape",
    ]  # fmt: skip
    assert keys_of("\x01\x00\x1b[200~é") == ["é"]


def picked(*keys: str) -> Picker:
    picker = Picker("Which?", (Item("one"), Item("two", wrong="too large"), Item("three")))
    for key in keys:
        picker = picker.press(key)
    return picker


def test_a_picker_moves_takes_and_does_not_wrap() -> None:
    assert picked("up", "enter").chosen == 0
    assert picked("down", "down", "down", "down", "enter").chosen == 2
    assert picked("3").chosen == 2
    assert picked("9").chosen is None
    assert picked("q").left
    refused = picked("down", "enter")
    assert (refused.chosen, refused.why) == (None, "too large")


def test_the_model_picker_marks_the_chosen_one() -> None:
    picker = model_picker(SHORT)
    assert picker is not None
    assert picker.at == 2
    assert "17.8 GB · 15.8 GB more needed · download 16.1 GB" in picker.items[2].note
    assert model_picker(replace(IN_ROOM, rows=())) is None


@pytest.mark.parametrize(
    ("keys", "gb", "notice"),
    [
        (("enter",), 4, False),
        (("right", "right", "enter"), 6, False),
        (("left", "left", "left", "left", "enter"), 1, False),
        (("2", ".", "5", "enter"), 2.5, False),
        (("9", "9", "enter"), 8, True),
        (("7", "backspace", "enter"), 4, False),
        ((".", "enter"), 4, False),
    ],
)
def test_an_amount_is_moved_or_typed_and_kept_within(keys: tuple[str, ...], gb: float, notice: bool) -> None:
    amount = Amount(4, 8)
    for key in keys:
        amount = amount.press(key)
    assert amount.done
    assert amount.gb == gb
    assert bool(amount.notice) == notice
    assert "GB" in amount.draw().plain
