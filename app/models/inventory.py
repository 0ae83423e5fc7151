"""Which models are on this computer, how much of them, and where from: for the list and the models page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from app.engine.gguf import GgufFile
from app.models.describe import licence_of, template_of
from app.models.finish import fetched_from
from app.models.partial import good_ranges, lent_ranges
from app.models.places import Origin, origin_of
from app.models.rows import full_table
from app.models.store import begun_downloads, home_of, is_file_whole, is_whole, partial_of, path_of
from app.models.table import ModelFile, ModelRecord, ModelTable


class State(Enum):
    """How much of a model is here; the value is how a person is told."""

    WHOLE = "whole"
    PARTIAL = "partial"
    ABSENT = "absent"


@dataclass(frozen=True)
class ModelHolding:
    """One model. ``here`` of ``total`` bytes are on this computer; ``need_gb`` is what a room lends for it.

    ``path`` is the first file's where it can be opened; ``origin`` is None while nothing is here.
    """

    record: ModelRecord
    state: State
    here: int
    total: int
    origin: Origin | None
    path: Path | None
    need_gb: float

    @property
    def licence(self) -> str:
        return self.record.licence


@dataclass(frozen=True)
class Words:
    """What a model's file says of itself, "" where it says nothing."""

    licence: str
    template: str


def inventory(table: ModelTable | None = None) -> tuple[ModelHolding, ...]:
    """All models, those that are not here too, in the table's order. Only sizes are read."""
    return tuple(holding_of(record) for record in full_table(table).models)


def holding_of(record: ModelRecord) -> ModelHolding:
    here = sum(_bytes_here(record, file) for file in record.files)
    state = State.WHOLE if is_whole(record) else State.PARTIAL if here else State.ABSENT
    path = path_of(record, record.files[0]) if state is State.WHOLE else None
    origin = _origin(record) if here else None
    return ModelHolding(record, state, here, record.download_bytes, origin, path, needed_gb(record))


def words_of(path: Path) -> Words:
    """Reads a header, which takes a moment for a large vocabulary; FileError when it cannot be read."""
    file = GgufFile.open(path)
    return Words(licence_of(file), template_of(file))


def needed_gb(record: ModelRecord) -> float:
    """As the table says; for other models weights, 16-bit keys and values of the usual context, and scratch."""
    if record.shown_gb:
        return record.shown_gb
    head = record.output_bytes or record.embed_bytes
    weights = record.layers * record.layer_bytes + record.embed_bytes + head + record.draft_bytes
    position = 4 * record.kv_heads * record.head_dim * record.layers // record.attention_interval
    context = record.contexts.default if record.contexts else 0
    return round((weights + context * position + record.scratch_bytes) / 1e9, 1)


def _bytes_here(record: ModelRecord, file: ModelFile) -> int:
    if is_file_whole(record, file):
        return file.bytes
    begun = (path.stat().st_size for path in begun_downloads(record, file) if path.is_file())
    return max([good_ranges(partial_of(record, file), file.bytes, file.sha256).total, *begun])


def _origin(record: ModelRecord) -> Origin:
    first = record.files[0]
    if is_file_whole(record, first) and path_of(record, first) != home_of(record, first):
        return origin_of(record.key, first.name) or Origin.OWN
    lent = any(lent_ranges(partial_of(record, file), file.bytes, file.sha256).spans for file in record.files)
    return Origin.ROOM if lent else fetched_from(record)
