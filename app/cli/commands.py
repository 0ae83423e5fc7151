"""What a typed line means in a room: an intent, something to show, or a word about what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from app.room import intents as it
from app.room.intents import Intent
from app.room.state import ModelRow, Phase, RoomState


class Show(Enum):
    """What can be printed again on request."""

    DEVICES = "devices"
    MODELS = "models"
    INVITE = "invite"
    HELP = "help"


@dataclass(frozen=True)
class Action:
    """``asks``: it is a question; ``starts``: it starts a model. ``wrong`` says why nothing is done."""

    intents: tuple[Intent, ...] = ()
    show: Show | None = None
    wrong: str = ""
    quits: bool = False
    panel: bool = False
    asks: bool = False
    starts: bool = False


ONLY_ASKS = "This device only asks in this room. Come in again with --gb to lend."

HELP = {
    "/start [model]": "start a model; part of its name is enough",
    "/model [model]": "list the models, or choose one",
    "/devices": "who is here and what they hold",
    "/invite": "code, link and QR again",
    "a, d": "let in or turn away whoever asks to join",
    "/stop": "end the running answer",
    "/again, /continue": "answer the last question again, or go on with a cut answer",
    "/new": "forget the conversation",
    "/redeal": "deal the layers again over who is here",
    "/lend GB": "lend another amount of memory",
    "/pause, /resume": "lend nothing while you need your GPU, then lend again",
    "/give NAME": "leave the room to another device (its owner)",
    "/own, /decline": "answer an owner that would leave its room to you",
    "/panel": "the whole room at a glance, on a terminal",
    "/quit": "leave for good; an own room ends",
}

_PLAIN: dict[str, Action] = {
    "/devices": Action(show=Show.DEVICES),
    "/models": Action(show=Show.MODELS),
    "/invite": Action(show=Show.INVITE),
    "/help": Action(show=Show.HELP),
    "/stop": Action((it.Stop(),)),
    "/new": Action((it.NewChat(),)),
    "/again": Action((it.Regenerate(),)),
    "/continue": Action((it.Continue(),)),
    "/redeal": Action((it.Redeal(),)),
    "/own": Action((it.AnswerHeir(yes=True),)),
    "/decline": Action((it.AnswerHeir(yes=False),)),
    "/pause": Action((it.PauseLending(paused=True),)),
    "/resume": Action((it.PauseLending(paused=False),)),
    "/panel": Action(panel=True),
    "/quit": Action(quits=True),
    "/exit": Action(quits=True),
}


def parse(line: str, state: RoomState) -> Action:
    """Everything that is no command is a question."""
    text = line.strip()
    if not text:
        return Action()
    if text.lower() in ("a", "d") and state.waiting:
        return _at_the_door(it.Allow if text.lower() == "a" else it.Deny, state)
    if not text.startswith("/"):
        return _question(text, state)
    word, _, rest = text.partition(" ")
    return _command(word.lower(), rest.strip(), state)


def _question(text: str, state: RoomState) -> Action:
    if state.can_ask:
        return Action((it.Ask(text),), asks=True)
    return Action(wrong="No model runs yet. /start starts one.", asks=True)


def _command(word: str, rest: str, state: RoomState) -> Action:
    if word in _PLAIN:
        return _PLAIN[word]
    if word in _WITH_ARGUMENT:
        return _WITH_ARGUMENT[word](rest, state)
    return Action(wrong=unknown_command(word, [*_PLAIN, *_WITH_ARGUMENT]))


def unknown_command(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, 1, 0.5)
    return f"There is no {word[:40]}. " + (f"Did you mean {near[0]}?" if near else "/help lists what there is.")


def _at_the_door(verdict: type[it.Allow | it.Deny], state: RoomState) -> Action:
    if not state.waiting:
        return Action(wrong="Nobody is waiting to be let in.")
    return Action((verdict(state.waiting[0].id),))


def _model(rest: str, state: RoomState) -> Action:
    if not rest:
        return Action(show=Show.MODELS)
    row = find_row(rest, state)
    return Action(wrong=row) if isinstance(row, str) else Action((it.ChooseModel(row.key),))


def _start(rest: str, state: RoomState) -> Action:
    if state.phase not in (Phase.ROOM, Phase.DEGRADED):
        return Action(wrong=f"{state.label or 'A model'} is already there.", starts=True)
    row = find_row(rest, state) if rest else usual_row(state)
    if row is None:
        return Action(wrong="There is no model to start here.", starts=True)
    if isinstance(row, str):
        return Action(wrong=row, starts=True)
    if not row.fits:
        return Action(wrong=f"{row.label}: {row.sentence}.", starts=True)
    return Action((it.ChooseModel(row.key), it.Start()), starts=True)


def _give(rest: str, state: RoomState) -> Action:
    heir = next((device for device in state.devices if device.name.lower() == rest.lower() and not device.me), None)
    if not state.i_am_creator or heir is None:
        return Action(wrong="Only the owner gives a room away, and to a device that is in it. /devices lists them.")
    return Action((it.HandOver(heir.id),))


def _lend(rest: str, state: RoomState) -> Action:
    if only_asks(state):
        return Action(wrong=ONLY_ASKS)
    try:
        gb = float(rest)
    except ValueError:
        gb = 0.0
    return Action((it.SetPledge(gb),)) if 0.5 <= gb <= 1024 else Action(wrong="How many GB? For example /lend 4")


def only_asks(state: RoomState) -> bool:
    """Whether this device came to lend nothing; the room then knows of no GPU that could."""
    me = state.my_device
    return me is not None and not me.holds_layers and not me.paused


def usual_row(state: RoomState) -> ModelRow | None:
    """What is started when no model is named: the one chosen by hand, else the largest that needs no download."""
    chosen = next((row for row in state.rows if row.key == state.chosen), None)
    if state.chosen_by_hand:
        return chosen
    here = [row for row in state.rows if row.fits and row.on_disk]
    return max(here, key=lambda row: row.need_gb, default=chosen)


def find_row(name: str, state: RoomState) -> ModelRow | str:
    """The model of that name or part of one; else what is wrong with it."""
    wanted = name.lower()
    exact = [row for row in state.rows if wanted in (row.key.lower(), row.label.lower())]
    found = exact or [row for row in state.rows if wanted in row.key.lower() or wanted in row.label.lower()]
    if len(found) == 1:
        return found[0]
    if not found:
        return f"There is no model {name[:40]!r}. /model lists them."
    return f"{name[:40]!r} could be {' or '.join(row.label for row in found[:4])}."


_WITH_ARGUMENT: dict[str, Callable[[str, RoomState], Action]] = {
    "/start": _start,
    "/model": _model,
    "/lend": _lend,
    "/give": _give,
    "/allow": lambda _rest, state: _at_the_door(it.Allow, state),
    "/deny": lambda _rest, state: _at_the_door(it.Deny, state),
}
