"""Whether ``pooled host`` opens the room again that was open here before."""

from __future__ import annotations

from app.cli.keyboard import Keyboard
from app.cli.printer import Printer
from app.room.codes import format_code
from app.room.intents import Reopen
from app.room.state import Offer

YES = frozenset({"y", "yes"})


async def way_back(offer: Offer | None, printer: Printer, keyboard: Keyboard | None, *, again: bool) -> Reopen | None:
    """An own room of a moment ago, or one asked for by ``again``, at once; an older one when the person says so.

    ``keyboard`` None: nothing is asked.
    """
    if offer is None or not offer.owner:
        if again:
            printer.line("There is no room to open again; this is a new one.")
        return None
    if again or offer.straight_back:
        return Reopen()
    code = format_code(offer.code)
    if keyboard is None or not keyboard.interactive:
        printer.line(f"Room {code} was open here a while ago; pooled host --again would have opened it again.")
        return None
    printer.line(f"Room {code} was open here a while ago. Open it again? y, or Enter for a new room")
    printer.prompt()
    answer = await keyboard.line()
    printer.typed()
    return Reopen() if answer is not None and answer.strip().lower() in YES else None
