"""``pooled pull``, ``list`` and ``rm``: the models on this computer (spec: product §4.7)."""

from __future__ import annotations

import asyncio
import json

from rich.console import Console
from rich.table import Table

from app.cli.console import make_console
from app.cli.device import opened_secrets
from app.cli.ending import DONE, FAILED, Ending
from app.cli.keyboard import Keyboard, standard_input
from app.cli.model_names import model_called
from app.cli.options import ListOptions, PullOptions, RemoveOptions
from app.cli.printer import QUIET, Printer
from app.cli.starter import fetch
from app.cli.text import gb_text, safe
from app.models.client import HUB_TOKEN
from app.models.inventory import ModelHolding, State, holding_of, inventory
from app.models.removal import remove as remove_files
from app.models.rows import full_table, refresh
from app.models.shelf import Shelf
from app.models.store import is_whole
from app.models.table import ModelRecord

YES = frozenset({"y", "yes"})
FIGURES = frozenset({"SIZE", "NEEDS"})


async def pull(options: PullOptions, _ending: Ending) -> int:
    """One after the other. After Ctrl-C what came is kept, and the next pull goes on there."""
    table = await asyncio.to_thread(full_table)
    records = [model_called(name, table) for name in options.models]
    async with opened_secrets() as secrets:
        shelf = Shelf(table, lambda: secrets.get(HUB_TOKEN))
        for record in records:
            if not await _pulled(shelf, record, make_console()):
                return FAILED
    return DONE


async def _pulled(shelf: Shelf, record: ModelRecord, console: Console) -> bool:
    """False when it was stopped."""
    printer = Printer(console, interactive=False)
    if is_whole(record):
        printer.line(f"{record.label} is here already.")
        return True
    try:
        await fetch(shelf, record, console)
    except asyncio.CancelledError:
        printer.line(f"Stopped; what came is kept. pooled pull {record.key} goes on.")
        return False
    printer.line(f"{record.label} is here, {size_text(record.download_bytes)}.")
    return True


async def show_list(options: ListOptions, _ending: Ending) -> int:
    return await print_models(as_json=options.json)


async def print_models(*, as_json: bool = False) -> int:
    """With those of other programs, whose stores are looked into first."""
    await asyncio.to_thread(refresh)
    holdings, console = await asyncio.to_thread(inventory), make_console()
    if as_json:
        print_json(holdings, console)
    else:
        console.print(list_table(holdings, console.width))
    return DONE


def print_json(holdings: tuple[ModelHolding, ...], console: Console) -> None:
    rows = [
        {
            "key": holding.record.key,
            "label": safe(holding.record.label),
            "state": holding.state.value,
            "bytes": holding.total,
            "here": holding.here,
            "from": holding.origin.value if holding.origin else None,
            "needs_gb": holding.need_gb,
            "path": str(holding.path) if holding.path else None,
        }
        for holding in holdings
    ]
    console.file.write(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")


def list_table(holdings: tuple[ModelHolding, ...], width: int) -> Table:
    """Name and state always; the rest where the terminal is wide enough."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    wide = width >= 72
    for name in ("MODEL", "STATE", *(("SIZE", "NEEDS", "FROM") if wide else ())):
        table.add_column(name, no_wrap=True, overflow="ellipsis", justify="right" if name in FIGURES else "left")
    for holding in holdings:
        rest = (size_text(holding.total), gb_text(holding.need_gb), holding.origin.value if holding.origin else "")
        table.add_row(safe(holding.record.key), state_text(holding), *(rest if wide else ()))
    return table


def state_text(holding: ModelHolding) -> str:
    if holding.state is State.PARTIAL:
        return f"{holding.here / holding.total:.0%} here" if holding.total else "begun"
    return "here" if holding.state is State.WHOLE else "not here"


async def remove(options: RemoveOptions, _ending: Ending) -> int:
    """Asks twice where a person can answer; without one -y is needed."""
    record = model_called(options.model, await asyncio.to_thread(full_table))
    printer, keyboard = Printer(make_console(), interactive=True), Keyboard(standard_input())
    if not options.yes and not await _sure(record, printer, keyboard):
        return FAILED
    freed = await asyncio.to_thread(remove_files, record)
    printer.line(f"{record.label} is gone, {size_text(freed)} are free again.")
    return DONE


async def _sure(record: ModelRecord, printer: Printer, keyboard: Keyboard) -> bool:
    if not keyboard.interactive:
        printer.line(f"Nobody can be asked here; pooled rm {record.key} -y deletes it.")
        return False
    here = size_text(holding_of(record).here)
    for question in (f"Delete {record.label}, {here}? y or n", "It has to be downloaded again then. Sure? y or n"):
        printer.line(question)
        printer.prompt()
        answer = await keyboard.line()
        printer.typed()
        if answer is None or answer.strip().lower() not in YES:
            printer.line("Nothing was deleted.")
            return False
    return True


def size_text(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
