"""Models fetched before they are needed, with their progress on the terminal."""

from __future__ import annotations

from rich.console import Console

from app.cli.progress import progress
from app.core.errors import PooledError
from app.models.shelf import Shelf
from app.models.store import is_whole
from app.models.table import ModelRecord


def starter(shelf: Shelf) -> ModelRecord | None:
    return next((record for record in shelf.table.models if record.starter), None)


async def fetch_starter(shelf: Shelf, console: Console) -> None:
    """Does nothing when it is there. A failure is told and is no reason not to open a room."""
    record = starter(shelf)
    if record is None or is_whole(record):
        return
    try:
        await fetch(shelf, record, console)
    except PooledError as error:
        console.print(f"{error.what} {error.remedy}".strip(), markup=False, highlight=False)


async def fetch(shelf: Shelf, record: ModelRecord, console: Console) -> None:
    """Errors as ``Shelf.provide``; what came stays."""
    tell, end = progress(record.label, console)
    try:
        await shelf.provide(record.key, tell)
    finally:
        end()
