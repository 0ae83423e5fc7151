"""The models on this computer, fetched when they are asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path

from app.core.errors import LinkError, ModelError
from app.engine.arch import FAMILIES
from app.engine.types import Part
from app.models.download import Tell
from app.models.fetch import fetch_model
from app.models.gather import Lenders
from app.models.partial import forget
from app.models.parts import has_ranges, parts_of
from app.models.store import first_file, is_whole, partial_of
from app.models.table import ModelRecord, ModelTable

log = logging.getLogger(__name__)


class Shelf:
    """Gives the files of a model key. Two who ask for the same model wait for one download."""

    def __init__(self, table: ModelTable) -> None:
        self.table = table
        self._fetching = asyncio.Lock()

    def on_disk(self) -> Collection[str]:
        """Keys of the models that are whole on this computer."""
        return tuple(record.key for record in self.table.models if is_whole(record))

    async def provide(self, key: str, tell: Tell) -> Path:
        """The first file of the whole model, downloaded if need be; ModelError, LinkError or FileError say why not."""
        record = self._record(key)
        async with self._fetching:
            if not is_whole(record):
                await _whole(record, tell)
        return first_file(record)

    async def provide_part(self, key: str, part: Part, tell: Tell, lenders: Lenders | None = None) -> Path:
        """The first file, of which as much is there as ``part`` reads; errors as ``provide``.

        Whole files are preferred. What is missing comes from ``lenders``, the devices of a room, before the source.
        """
        record = self._record(key)
        async with self._fetching:
            if is_whole(record):
                return first_file(record)
            if lenders is None and part.embed and part.head and part.layers == record.layers:
                return await _whole(record, tell)
            if _has_ranges(record):
                async with parts_of(record, lenders) as parts:
                    return await parts.part(part, tell)
            return await _packed(record, tell, lenders)

    async def provide_header(self, key: str, lenders: Lenders | None = None) -> Path:
        """The first file with as much as says what the model is: its description, tokenizer and chat template."""
        record = self._record(key)
        async with self._fetching:
            if not is_whole(record) and _has_ranges(record):
                async with parts_of(record, lenders) as parts:
                    return await parts.headers()
        return await self.provide(key, lambda _transfer: None)

    def _record(self, key: str) -> ModelRecord:
        record = self.table.get(key)
        _check_family(record)
        return record


async def _whole(record: ModelRecord, tell: Tell) -> Path:
    """What is there of a part is not fetched again."""
    if _has_ranges(record) and any(partial_of(record, file).exists() for file in record.files):
        async with parts_of(record, None) as parts:
            return await parts.everything(tell)
    return await fetch_model(record, tell)


async def _packed(record: ModelRecord, tell: Tell, lenders: Lenders | None) -> Path:
    """A model whose source is an archive comes whole: from another device, else with its archive."""
    if lenders is not None:
        try:
            async with parts_of(record, lenders) as parts:
                return await parts.everything(tell)
        except LinkError as error:
            log.info("%s comes with its archive: %s", record.key, error.what)
    path = await fetch_model(record, tell)
    for file in record.files:
        forget(partial_of(record, file))
    return path


def _has_ranges(record: ModelRecord) -> bool:
    return all(has_ranges(file) for file in record.files)


def _check_family(record: ModelRecord) -> None:
    """Before gigabytes are fetched for nothing."""
    if record.family not in FAMILIES:
        raise ModelError(f"{record.label} is of a kind this version cannot run yet.", "Choose another model.")
