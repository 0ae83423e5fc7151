"""What a terminal shows of a room."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from app.cli.commands import Show
from app.cli.printer import Printer
from app.cli.progress import plain_progress
from app.cli.qr import qr_text
from app.cli.screen import Screen
from app.cli.text import safe
from app.models.transfer import Transfer
from app.room.settings import RoomSettings
from app.room.state import Exchange, Invite, Notice, Phase, RoomState
from tests.cli.fake_room import HERON, IN_ROOM, KNOCK, ONLINE, OTTER, printer

LINK = "http://192.168.1.20:47600/r/4TKG9P?signal=192.168.1.20%3A47600#k=AbCdEfGhIjKlMnOpQrStUv"


def drawn(*states: RoomState) -> str:
    """Everything printed on the way to the last state."""
    made, out = printer()
    screen = Screen(made)
    for state in states:
        screen.draw(state)
    return out.getvalue()


def answering(answer: str, *, live: bool = True, thinking: str | None = None, **changed: object) -> RoomState:
    exchange = Exchange("1", "h", "heron", "Why?", answer, live=live, thinking=thinking, stats="7 tok · 2.0 tok/s")
    phase = Phase.ANSWERING if live else Phase.ONLINE
    return replace(ONLINE, phase=phase, transcript=(replace(exchange, **changed),))  # type: ignore[arg-type]


def test_an_answer_streams_each_word_once() -> None:
    states = [
        answering("The"),
        answering("The sky"),
        answering("The sky is blue."),
        answering("The sky is blue.", live=False),
    ]
    said = drawn(ONLINE, *states)
    assert said.endswith("heron: Why?\nThe sky is blue.\n7 tok · 2.0 tok/s\n")


def test_a_line_in_between_does_not_run_into_an_answer() -> None:
    joined = replace(answering("The"), devices=(*ONLINE.devices, HERON))
    said = drawn(ONLINE, answering("The"), joined, replace(joined, transcript=answering("The sky").transcript))
    assert "\nThe\n+ heron" in said
    assert said.endswith("4 GB\n sky")


def test_reasoning_comes_before_its_answer_on_a_line_of_its_own() -> None:
    said = drawn(ONLINE, answering("", thinking="Hm"), answering("", thinking="Hmm"), answering("Blue", thinking="Hmm"))
    assert said.endswith("heron: Why?\nHmm\nBlue")


def test_a_text_that_changes_is_said_again() -> None:
    assert drawn(ONLINE, answering("The sky"), answering("A sky")).endswith("The sky\nA sky")


def test_a_hidden_answer_stays_hidden() -> None:
    assert "secret" not in drawn(ONLINE, answering("secret", hidden=True))


def test_a_cut_answer_says_how_to_go_on() -> None:
    assert "/continue" in drawn(ONLINE, answering("So"), answering("So", live=False, capped=True))


def test_coming_and_trouble_are_told_once() -> None:
    came = replace(IN_ROOM, devices=(OTTER, HERON), notices=(Notice(1, "heron joined."),))
    silent = replace(came, devices=(OTTER, replace(HERON, silent=True)))
    said = drawn(IN_ROOM, came, silent, replace(silent, status_line="x"), came)
    assert said.count("heron") == 3
    assert "heron: not responding\nheron: connected\n" in said


def test_who_waits_at_the_door_is_told_with_digits() -> None:
    said = drawn(IN_ROOM, replace(IN_ROOM, waiting=(KNOCK,)), replace(IN_ROOM, waiting=(KNOCK,), status_line="x"))
    assert said.count("wren wants to join (computer, lends 2 GB). It must show 123 456. [a]llow / [d]eny\n") == 1


def test_the_invite_says_who_gets_in() -> None:
    assert "wait until you allow them" in drawn(IN_ROOM)
    assert "so is whoever has the code" in drawn(replace(IN_ROOM, settings=RoomSettings(ask_first=False)))


def test_in_the_lobby_the_digits_are_shown() -> None:
    assert "Their screen must show 654 321" in drawn(RoomState(phase=Phase.LOBBY, digits="654321"))


def test_loading_is_told_in_quarters() -> None:
    loads = [replace(IN_ROOM, devices=(replace(OTTER, progress=i / 100),)) for i in range(101)]
    assert drawn(IN_ROOM, *loads).count("loaded") == 4


@pytest.mark.parametrize("what", list(Show))
def test_everything_can_be_shown_again(what: Show) -> None:
    made, out = printer()
    screen = Screen(made)
    screen.draw(IN_ROOM)
    out.truncate(0)
    screen.show(what)
    assert out.getvalue().strip()


def test_a_rooms_text_cannot_move_the_cursor_or_turn_the_line() -> None:
    evil = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\r\x08"
    assert safe(evil) == "a]0;title[2J31mb"
    assert safe("Grüße, 世界 👩‍🚀\n\tx") == "Grüße, 世界 👩‍🚀\n\tx"
    said = drawn(
        replace(IN_ROOM, devices=(OTTER, replace(HERON, name=evil, gpu=evil)), notices=(Notice(1, evil),)),
        replace(IN_ROOM, waiting=(replace(KNOCK, name=evil),)),
        answering(evil, asker=evil, question=evil, stats=evil, live=False),
    )
    assert not set(said) & set("\x1b\x07\x9b\u202e\r\x08")


def test_markup_in_a_rooms_text_stays_text() -> None:
    assert "[bold]loud[/bold] :smile:" in drawn(ONLINE, answering("[bold]loud[/bold] :smile:"))


def test_no_colour_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    Screen(Printer(Console(file=out, force_terminal=True), interactive=False)).draw(IN_ROOM)
    assert "\x1b[3" not in out.getvalue()


def test_the_prompt_gives_way_to_lines_and_is_absent_while_an_answer_streams() -> None:
    made, out = printer(interactive=True, color_system=None)
    screen = Screen(made)
    screen.draw(ONLINE)
    assert out.getvalue().endswith("> ")
    screen.draw(answering("The"))
    assert out.getvalue().endswith("> \r\x1b[Kheron: Why?\nThe")
    screen.draw(answering("The", live=False))
    assert out.getvalue().endswith("tok/s\n> ")


def test_a_terminal_without_unicode_gets_the_link_and_no_blocks() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, "ascii", errors="replace"))
    Screen(Printer(console, interactive=False)).draw(replace(IN_ROOM, invite=Invite("4TKG9P", LINK, has_key=True)))
    assert LINK.encode() in raw.getvalue()
    assert b"?????" not in raw.getvalue()


def test_a_qr_code_fits_an_ordinary_terminal() -> None:
    lines = qr_text(LINK).split("\n")
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) < 60
    assert len(lines) < 30


def test_progress_without_a_terminal_is_a_line_every_tenth() -> None:
    out = io.StringIO()
    tell = plain_progress(Console(file=out))
    for done in range(0, 1001):
        tell(Transfer(done * 100_000, 100_000_000, 5e6, 3.2))
    lines = out.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[4] == " 50%  50.0 of 100.0 MB, 5.0 MB/s, 3 s left"


def test_nothing_a_peer_says_moves_the_cursor_wherever_it_is_printed() -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202etxt"
    states = [
        replace(ONLINE, label=hostile, status_line=hostile, phase=Phase.STARTING),
        replace(ONLINE, label=hostile),
        replace(ONLINE, devices=(replace(HERON, name=hostile, gpu=hostile),)),
        replace(ONLINE, waiting=(replace(KNOCK, name=hostile),)),
        replace(ONLINE, notices=(Notice(9, hostile, hostile),)),
        answering(hostile, thinking=hostile, question=hostile, asker=hostile, stats=hostile),
        answering(hostile, live=False, thinking=hostile, question=hostile, asker=hostile, stats=hostile),
        replace(ONLINE, phase=Phase.HELD, held_by=hostile),
        replace(ONLINE, phase=Phase.OVER, trouble=hostile, remedy=hostile),
    ]
    said = drawn(ONLINE, *states)
    assert "owned" in said
    assert not set(said) & set("\x1b\x07\x9b\u202e")
