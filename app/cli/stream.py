"""Questions and answers of the room as they come, each word once."""

from __future__ import annotations

from app.cli.printer import ACCENT, QUIET, Printer
from app.cli.text import safe
from app.room.state import Exchange, RoomState


class AnswerStream:
    """Prints what is new of the exchanges. Reasoning is dimmed and comes before its answer."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._known: dict[str, Exchange] = {}

    def draw(self, state: RoomState) -> None:
        for exchange in state.transcript:
            before = self._known.get(exchange.id)
            if before != exchange:
                self._known[exchange.id] = exchange
                self._exchange(before, exchange)
        here = {exchange.id for exchange in state.transcript}
        self._known = {id: exchange for id, exchange in self._known.items() if id in here}

    def _exchange(self, before: Exchange | None, now: Exchange) -> None:
        if before is None:
            self._printer.line(f"{safe(now.asker)}: {safe(now.question)}", ACCENT)
            before = Exchange(now.id, now.asker_id, now.asker, now.question, live=True)
        if now.hidden:
            return
        self._printer.stream(_added(before.thinking or "", now.thinking or ""), QUIET)
        if now.answer and not before.answer and now.thinking:
            self._printer.end()
        self._printer.stream(_added(before.answer, now.answer))
        if before.live and not now.live:
            self._ended(now)

    def _ended(self, exchange: Exchange) -> None:
        cut = "Cut at its length limit; /continue goes on. " if exchange.capped else ""
        failed = "The answer broke off. " if exchange.failed else ""
        self._printer.line(f"{failed}{cut}{safe(exchange.stats)}".strip(), QUIET)


def _added(before: str, now: str) -> str:
    """What came to the end. A text that was changed otherwise is said again, on a line of its own."""
    return safe(now[len(before) :] if now.startswith(before) else f"\n{now}")
