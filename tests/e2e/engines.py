"""Real engines behind a line of devices: small models, no links, no rooms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from app.engine.arch import read_config
from app.engine.gguf import GgufFile
from app.engine.types import KvFormat, Part
from app.models.shelf import Shelf
from app.models.table import ModelRecord, ModelTable
from app.room.compute import EngineCompute
from app.room.ports import LoadRequest
from tests.e2e.rooms import record_of
from tests.room.line import PLEDGE, Line


class OneFile:
    """A shelf with one file on it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def provide_part(self, *_wanted: object) -> Path:
        return self._path


class EngineLine(Line):
    """A line whose devices own engines; ``close`` frees them."""

    async def close(self) -> None:
        await super().close()
        for compute in self.computes:
            await cast(EngineCompute, compute).close()


async def engine_line(
    path: Path, cuts: Sequence[int], *, drafts: bool = True, kv: KvFormat = KvFormat.F16, context: int = 512,
    copies: Sequence[Any] = (),
) -> EngineLine:  # fmt: skip
    """The model dealt at ``cuts``, the first device being the model host."""
    record = record_of(path)
    computes = [EngineCompute(cast(Shelf, OneFile(path))) for _ in range(len(cuts) + 1)]
    line = EngineLine(computes, record, cuts, ModelTable((record,)))
    await line.start(request(path, record, cuts, drafts=drafts, kv=kv, context=context), copies)
    return line


def request(
    path: Path, record: ModelRecord, cuts: Sequence[int], *, drafts: bool, kv: KvFormat, context: int
) -> LoadRequest:
    draft = drafts and read_config(GgufFile.open(path)).drafts
    part = Part(0, (*cuts, record.layers)[0], embed=True, head=True, draft=draft)
    return LoadRequest(record.key, part, context, kv, PLEDGE)
