"""The small model that comes first, with a bar while it is fetched."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from app.core.errors import PooledError
from app.models.download import Tell, Transfer
from app.models.shelf import Shelf
from app.models.store import is_whole
from app.models.table import ModelRecord

PLAIN_STEP = 0.1


def starter(shelf: Shelf) -> ModelRecord | None:
    return next((record for record in shelf.table.models if record.starter), None)


async def fetch_starter(shelf: Shelf, console: Console) -> None:
    """Does nothing when it is there. A failure is told and is no reason not to open a room."""
    record = starter(shelf)
    if record is None or is_whole(record):
        return
    try:
        await (_with_bar if console.is_terminal else _with_lines)(shelf, record, console)
    except PooledError as error:
        console.print(f"{error.what} {error.remedy}".strip(), markup=False, highlight=False)


async def _with_bar(shelf: Shelf, record: ModelRecord, console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(f"Fetching {record.label}", total=None)
        await shelf.provide(
            record.key, lambda transfer: progress.update(task, completed=transfer.done, total=transfer.total or None)
        )


async def _with_lines(shelf: Shelf, record: ModelRecord, console: Console) -> None:
    console.print(f"Fetching {record.label}", markup=False, highlight=False)
    await shelf.provide(record.key, plain_progress(console))


def plain_progress(console: Console) -> Tell:
    """A line every tenth of the way."""
    told = 0

    def tell(transfer: Transfer) -> None:
        nonlocal told
        step = int(transfer.done / transfer.total / PLAIN_STEP) if transfer.total else 0
        if step > told:
            told = step
            console.print(transfer_line(transfer), markup=False, highlight=False)

    return tell


def transfer_line(transfer: Transfer) -> str:
    left = f", {transfer.left:.0f} s left" if transfer.left is not None else ""
    done, total = transfer.done / 1e6, transfer.total / 1e6
    return f"{done / total:4.0%}  {done:.1f} of {total:.1f} MB, {transfer.speed / 1e6:.1f} MB/s{left}"
