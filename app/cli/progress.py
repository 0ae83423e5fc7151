"""A download on the terminal: one line redrawn in place, or a line every tenth of the way (spec: product D-006)."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from app.cli.printer import Printer
from app.models.transfer import Stage, Tell, Transfer

PLAIN_STEP = 0.1
BAR = 16


def progress(name: str, console: Console) -> tuple[Tell, Callable[[], None]]:
    """What is told of it, and the function that ends the line."""
    if console.is_terminal and not console.is_dumb_terminal:
        printer = Printer(console, interactive=False)
        plain = not console.encoding.lower().startswith("utf")
        return lambda transfer: printer.status(bar_line(name, transfer, console.width, plain=plain)), printer.end
    console.print(f"Fetching {name}", markup=False, highlight=False)
    return plain_progress(console), lambda: None


def plain_progress(console: Console) -> Tell:
    """Each stage from its beginning."""
    told = 0
    stage = Stage.FETCH

    def tell(transfer: Transfer) -> None:
        nonlocal told, stage
        if transfer.stage is not stage:
            told, stage = 0, transfer.stage
        step = int(transfer.share / PLAIN_STEP)
        if step > told:
            told = step
            console.print(transfer_line(transfer), markup=False, highlight=False, soft_wrap=True)

    return tell


def transfer_line(transfer: Transfer) -> str:
    left = f", {time_text(transfer.left)} left" if transfer.left is not None else ""
    done, total = transfer.done / 1e6, transfer.total / 1e6
    checked = "" if transfer.stage is Stage.FETCH else " checked"
    return f"{transfer.share:4.0%}  {done:.1f} of {total:.1f} MB{checked}, {transfer.speed / 1e6:.1f} MB/s{left}"


def bar_line(name: str, transfer: Transfer, width: int, *, plain: bool = False) -> str:
    """Fixed columns; on a narrow terminal the name and the bar go first, the figures stay."""
    figures = transfer_line(transfer)
    full = round(transfer.share * BAR)
    bar = ("#" if plain else "━") * full + ("." if plain else "─") * (BAR - full)
    for line in (f"{name}  {bar} {figures}", f"{name}  {figures}", figures):
        if len(line) < width:
            return line
    return figures[: width - 1]


def time_text(seconds: float) -> str:
    """As a person reads it: "12 s", "3:05 min", "2:10 h"."""
    whole = min(round(seconds), 359_999)
    if whole < 100:
        return f"{whole} s"
    if whole < 6000:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"
