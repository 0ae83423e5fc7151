"""The models on this computer, fetched when they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from app.core.errors import ModelError
from app.engine.arch import FAMILIES
from app.models.download import Tell
from app.models.fetch import fetch_model
from app.models.store import first_file, is_whole
from app.models.table import ModelRecord, ModelTable


class Shelf:
    """Gives the file of a model key. Two who ask for the same model wait for one download."""

    def __init__(self, table: ModelTable) -> None:
        self.table = table
        self._fetching = asyncio.Lock()

    def on_disk(self) -> Collection[str]:
        """Keys of the models that are whole on this computer."""
        return tuple(record.key for record in self.table.models if is_whole(record))

    async def provide(self, key: str, tell: Tell) -> Path:
        """The first file, downloaded if need be; ModelError, LinkError or FileError say why not."""
        record = self.table.get(key)
        _check_family(record)
        async with self._fetching:
            if not is_whole(record):
                await fetch_model(record, tell)
        return first_file(record)


def _check_family(record: ModelRecord) -> None:
    """Before gigabytes are fetched for nothing."""
    if record.family not in FAMILIES:
        raise ModelError(f"{record.label} is of a kind this version cannot run yet.", "Choose another model.")
