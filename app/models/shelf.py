"""The models on this computer, fetched when they are asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path

from app.core.errors import LinkError, ModelError
from app.engine.arch import FAMILIES
from app.engine.types import Part
from app.models.adopt import adopt
from app.models.client import Token, no_token
from app.models.fetch import fetch_model
from app.models.gather import Lenders
from app.models.partial import forget
from app.models.parts import has_ranges, parts_of
from app.models.store import first_file, is_whole, partial_of
from app.models.table import ModelRecord, Models
from app.models.transfer import Tell

log = logging.getLogger(__name__)


class Shelf:
    """Gives the files of a model key. Two who ask for the same model wait for one download.

    ``token`` is the person's for the hub, "" for none, asked each time.
    """

    def __init__(self, table: Models, token: Token = no_token) -> None:
        self.table = table
        self._token = token
        self._fetching = asyncio.Lock()

    def on_disk(self) -> Collection[str]:
        """Keys of the models that are whole on this computer."""
        return tuple(record.key for record in self.table.models if is_whole(record))

    def kept(self, key: str) -> Path | None:
        """The first file of a model that is whole on this computer; nothing is fetched."""
        record = self.table.find(key)
        return first_file(record) if record is not None and is_whole(record) else None

    async def provide(self, key: str, tell: Tell) -> Path:
        """The first file of the whole model, downloaded if need be; ModelError, LinkError or FileError say why not.

        A model that lies in another program's store is used from there.
        """
        record = self._record(key)
        async with self._fetching:
            if not await adopt(record, tell):
                await fetch_model(record, tell, self._token)
        return first_file(record)

    async def provide_part(self, key: str, part: Part, tell: Tell, lenders: Lenders | None = None) -> Path:
        """The first file, of which as much is there as ``part`` reads; errors as ``provide``.

        Whole files are preferred. What is missing comes from ``lenders``, the devices of a room, before the source.
        """
        record = self._record(key)
        async with self._fetching:
            if await adopt(record, tell):
                return first_file(record)
            if lenders is None and part.embed and part.head and part.layers == record.layers:
                return await fetch_model(record, tell, self._token)
            if _has_ranges(record):
                async with parts_of(record, lenders, self._token) as parts:
                    return await parts.part(part, tell)
            return await self._packed(record, tell, lenders)

    async def provide_header(self, key: str, lenders: Lenders | None = None) -> Path:
        """The first file with as much as says what the model is: its description, tokenizer and chat template."""
        record = self._record(key)
        async with self._fetching:
            if not await adopt(record, lambda _transfer: None) and _has_ranges(record):
                async with parts_of(record, lenders, self._token) as parts:
                    return await parts.headers()
        return await self.provide(key, lambda _transfer: None)

    async def _packed(self, record: ModelRecord, tell: Tell, lenders: Lenders | None) -> Path:
        """A model whose source is an archive comes whole: from another device, else with its archive."""
        if lenders is not None:
            try:
                async with parts_of(record, lenders, self._token) as parts:
                    return await parts.everything(tell)
            except LinkError as error:
                log.info("%s comes with its archive: %s", record.key, error.what)
        path = await fetch_model(record, tell, self._token)
        for file in record.files:
            forget(partial_of(record, file))
        return path

    def _record(self, key: str) -> ModelRecord:
        record = self.table.get(key)
        _check_family(record)
        return record


def _has_ranges(record: ModelRecord) -> bool:
    return all(has_ranges(file) for file in record.files)


def _check_family(record: ModelRecord) -> None:
    """Before gigabytes are fetched for nothing."""
    if record.family not in FAMILIES:
        raise ModelError(f"{record.label} is of a kind this version cannot run yet.", "Choose another model.")
