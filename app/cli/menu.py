"""``pooled`` alone in a terminal: a short menu whose every line runs a verb (spec: product §4.1)."""

from __future__ import annotations

import os

from rich.console import Console
from rich.live import Live

from app.cli.keyboard import standard_input
from app.cli.keys import has_single_keys, keys_of, single_keys
from app.cli.options import ChatOptions, HostOptions, JoinOptions, ListOptions, Options, ServeOptions
from app.cli.picker import Item, Picker

MENU = Picker(
    "Pooled",
    (
        Item("Host a room", "open one here and lend this device"),
        Item("Join a room", "lend this device to it"),
        Item("Chat with a room", "ask, without lending anything"),
        Item("Use a room from your tools", "an API on this computer"),
        Item("Manage models", "what is here, what can be downloaded"),
    ),
)
LONGEST_ANSWER = 4096


def is_asked(console: Console) -> bool:
    """Whether somebody can answer here."""
    return os.isatty(standard_input()) and console.is_terminal


def ask(console: Console) -> Options | None:
    """None when nothing was chosen."""
    one_by_one = has_single_keys() and not console.is_dumb_terminal
    chosen = _by_keys(console) if one_by_one else _by_number(console)
    if chosen is None:
        return None
    where = _room(console) if chosen in (1, 2, 3) else ""
    return _wish(chosen, where) if where or chosen in (0, 4) else None


def _wish(chosen: int, where: str) -> Options:
    wishes: tuple[Options, ...] = (
        HostOptions(),
        JoinOptions(where=where),
        ChatOptions(where=where),
        ServeOptions(where=where),
        ListOptions(),
    )
    return wishes[chosen]


def _by_keys(console: Console) -> int | None:
    picker, descriptor = MENU, standard_input()
    plain = not console.encoding.lower().startswith("utf")
    with single_keys(descriptor), Live(console=console, auto_refresh=False, transient=True) as live:
        while picker.chosen is None and not picker.left:
            live.update(picker.draw(ascii_only=plain), refresh=True)
            typed = os.read(descriptor, 256).decode(errors="replace")
            for key in keys_of(typed) if typed else ("end",):
                if picker.chosen is None and not picker.left:
                    picker = picker.press(key)
    return picker.chosen


def _by_number(console: Console) -> int | None:
    """For terminals that cannot be redrawn."""
    for i, item in enumerate(MENU.items):
        console.print(f"{i + 1} {item.label}", highlight=False)
    answer = _line(console, "Which one? ")
    return int(answer) - 1 if answer in ("1", "2", "3", "4", "5") else None


def _room(console: Console) -> str:
    return _line(console, "Which room? Its code, or paste its link: ")


def _line(console: Console, question: str) -> str:
    """Read as far as the line goes and no farther: what follows is for whoever reads next."""
    console.print(question, end="", markup=False, highlight=False, soft_wrap=True)
    return os.read(standard_input(), LONGEST_ANSWER).decode(errors="replace").strip()
