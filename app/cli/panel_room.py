"""A room on the panel: draws its states in place and obeys single keys."""

from __future__ import annotations

import asyncio
import base64
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live

from app.cli.amount import Amount
from app.cli.ending import DONE
from app.cli.keyboard import Keyboard
from app.cli.keys import has_single_keys, keys_of, single_keys
from app.cli.panel import Look, panel
from app.cli.panel_keys import Opens, press
from app.cli.picker import Item, Picker
from app.cli.session import first_of, over
from app.cli.text import download_text, gb_text
from app.cli.waiting import RoomLike
from app.room import intents as it
from app.room.state import RoomState

REDRAWN_S = 1.0


def can_show(console: Console, keyboard: Keyboard) -> bool:
    """Whether the terminal can be redrawn and gives single keys."""
    able = console.is_terminal and not console.is_dumb_terminal
    return able and keyboard.interactive and has_single_keys()


class PanelRoom:
    """``run`` stays until the room ends or is left, and returns the exit code; None when lines are wanted: a chat.

    ``most_gb``: what can be lent at all.
    """

    def __init__(self, room: RoomLike, console: Console, keyboard: Keyboard, most_gb: float) -> None:
        self._room = room
        self._console = console
        self._keyboard = keyboard
        self._most_gb = most_gb
        self._began = time.monotonic()
        self._note = ""
        self._warned = False
        self._asking: Picker | Amount | None = None
        self._live = Live(console=console, auto_refresh=False, transient=True)

    async def run(self) -> int | None:
        unsubscribe = self._room.subscribe(lambda _state: self._redraw())
        self._keyboard.by_key = True
        try:
            with single_keys(self._keyboard.descriptor), self._live:
                self._redraw()
                return await first_of({"obey keys": self._obey(), "clock": self._tick(), "end": over(self._room)})
        finally:
            self._keyboard.by_key = False
            unsubscribe()

    async def _tick(self) -> int | None:
        while True:
            await asyncio.sleep(REDRAWN_S)
            self._redraw()

    def _redraw(self) -> None:
        self._live.update(self._drawn(self._room.state), refresh=True)

    def _drawn(self, state: RoomState) -> RenderableType:
        plain = not self._console.encoding.lower().startswith("utf")
        look = Look(self._console.width, time.monotonic() - self._began, plain, self._note)
        shown = panel(state, look)
        match self._asking:
            case Picker() as picker:
                return Group(shown, picker.draw(ascii_only=plain))
            case Amount() as amount:
                return Group(shown, amount.draw())
            case _:
                return shown

    async def _obey(self) -> int | None:
        while (typed := await self._keyboard.typed()) is not None:
            for key in keys_of(typed):
                if self._asking is not None:
                    self._answer(key)
                elif (opened := self._press(key)) is Opens.CHAT:
                    return None
                elif opened is Opens.QUIT and self._leaves():
                    return DONE
            self._redraw()
        return DONE

    def _leaves(self) -> bool:
        """At once from an empty room; one with others in it closes for them, so that takes a second key."""
        others = len(self._room.state.people) - 1
        if others <= 0 or self._warned:
            return True
        self._warned, self._note = True, f"The room closes for {others} more; q again closes it."
        return False

    def _press(self, key: str) -> Opens | None:
        pressed = press(key, self._room.state)
        self._note = pressed.note
        self._warned = self._warned and pressed.opens is Opens.QUIT
        for intent in pressed.intents:
            self._room.handle(intent)
        match pressed.opens:
            case Opens.MODELS:
                self._asking = model_picker(self._room.state)
                self._note = "" if self._asking else "There is no model to start here."
            case Opens.AMOUNT:
                me = self._room.state.my_device
                self._asking = Amount(me.gb if me else 1.0, self._most_gb) if self._most_gb >= 1 else None
            case Opens.LINK:
                self._copy_link()
            case _:
                pass
        return pressed.opens

    def _answer(self, key: str) -> None:
        """A key while something is asked."""
        match self._asking:
            case Picker() as picker:
                self._asking = self._picked(picker.press(key))
            case Amount() as amount:
                self._asking = self._given(amount.press(key))
            case _:
                pass

    def _picked(self, picker: Picker) -> Picker | None:
        rows = self._room.state.rows
        if picker.chosen is not None and picker.chosen < len(rows):
            self._room.handle(it.ChooseModel(rows[picker.chosen].key))
        return None if picker.chosen is not None or picker.left else picker

    def _given(self, amount: Amount) -> Amount | None:
        if amount.done:
            self._note = amount.notice or f"This device lends {gb_text(amount.gb)}."
            self._room.handle(it.SetPledge(amount.gb))
        return None if amount.done or amount.left else amount

    def _copy_link(self) -> None:
        """By the terminal itself (OSC 52), so that it works over ssh."""
        invite = self._room.state.invite
        if invite is None or not invite.link:
            self._note = "There is no link yet."
            return
        copied = base64.b64encode(invite.link.encode()).decode()
        self._console.file.write(f"\x1b]52;c;{copied}\x07")
        self._note = "The link is copied, where the terminal allows it."


def model_picker(state: RoomState) -> Picker | None:
    """Every model with what it needs, the chosen one marked; None where there is none."""
    items = tuple(
        Item(row.label, f"{gb_text(row.need_gb)} · {row.sentence} · {_fetched(row.on_disk, row.download_bytes)}")
        for row in state.rows
    )
    at = next((i for i, row in enumerate(state.rows) if row.key == state.chosen), 0)
    return Picker("Which model?", items, at) if items else None


def _fetched(on_disk: bool, size: int) -> str:
    return "downloaded" if on_disk else download_text(size)
