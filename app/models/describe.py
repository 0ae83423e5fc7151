"""A model's row of the table, and what else a person is shown of it, from the header of its own file."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from app.engine.arch import Mixer, ModelConfig, read_config
from app.engine.gguf import GgufFile, TensorInfo
from app.engine.gguf.types import type_name
from app.engine.model.extents import part_extents
from app.engine.types import Part
from app.models.table import Experts, ModelFile, ModelRecord, Recurrent, record_from_header

LONGEST_NAME = 60
LONGEST_TEMPLATE = 256 << 10
_BLOCK = re.compile(r"blk\.(\d+)\.")


@dataclass(frozen=True)
class Described:
    """``licence`` and ``template`` (Jinja) are the file's own words, "" where it has none."""

    record: ModelRecord
    template: str
    quantisation: str

    @property
    def licence(self) -> str:
        return self.record.licence


def describe(path: Path, name: str = "") -> Described:
    """Reads the headers of a model's files; ``name`` is used where the file has none.

    Raises FileError for a file that is damaged or incomplete, ModelError for a model that cannot run here.
    """
    file = GgufFile.open(path)
    config = read_config(file)
    part_extents(file, Part(0, config.layers, embed=True, head=True))
    kinds: Counter[int] = Counter()
    for tensor in file.tensors.values():
        kinds[tensor.code] += tensor.values
    quantisation = type_name(kinds.most_common(1)[0][0])
    label = _text(file, "general.name", LONGEST_NAME) or shown(name or path.stem, LONGEST_NAME)
    return Described(
        record=_record(file, config, f"{label} · {quantisation}"),
        template=template_of(file),
        quantisation=quantisation,
    )


def licence_of(file: GgufFile) -> str:
    return _text(file, "general.license", LONGEST_NAME)


def template_of(file: GgufFile) -> str:
    """The chat template as it stands in the file."""
    template = file.metadata.get("tokenizer.chat_template", "")
    return template[:LONGEST_TEMPLATE] if isinstance(template, str) else ""


def _record(file: GgufFile, config: ModelConfig, label: str) -> ModelRecord:
    sizes = _Sizes.of(file, config)
    key = _key_of(file)
    first, *others = _files_of(file, key)
    return record_from_header(
        key=key,
        label=label,
        family=config.architecture,
        file=first,
        others=tuple(others),
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads.heads,
        kv_heads=config.heads.kv_heads,
        head_dim=config.heads.size,
        vocab=config.vocab,
        trained_context=config.context,
        trunk_bytes=sizes.trunk,
        embed_bytes=file.tensor("token_embd.weight").nbytes,
        output_bytes=0 if config.tied else file.tensor("output.weight").nbytes,
        draft_bytes=sizes.draft,
        attention_interval=max(1, config.layers // max(1, config.mixers.count(Mixer.ATTENTION))),
        recurrent=_recurrent(config),
        experts=_experts(config, sizes),
        licence=licence_of(file),
    )


def _key_of(file: GgufFile) -> str:
    """By the content alone: the same on every device, whatever the file is called there."""
    name = _text(file, "general.name", LONGEST_NAME) or file.architecture
    return f"{_slug(name)}-{file.identity()[:8]}"


def _files_of(file: GgufFile, key: str) -> list[ModelFile]:
    """The files of a split model are known by their names, a single one is not."""
    if len(file.parts) == 1:
        return [ModelFile(f"{key}.gguf", file.nbytes, "")]
    return [ModelFile(part.name, part.stat().st_size, "") for part in file.parts]


@dataclass(frozen=True)
class _Sizes:
    """Bytes in the file: of all layers, of their routed experts, and of the draft block."""

    trunk: int
    experts: int
    draft: int

    @classmethod
    def of(cls, file: GgufFile, config: ModelConfig) -> _Sizes:
        blocks = [(layer, tensor) for tensor in file.tensors.values() if (layer := _layer_of(tensor)) is not None]
        trunk = [tensor for layer, tensor in blocks if layer < config.layers]
        return cls(
            trunk=sum(tensor.nbytes for tensor in trunk),
            experts=sum(tensor.nbytes for tensor in trunk if "_exps." in tensor.name),
            draft=sum(tensor.nbytes for layer, tensor in blocks if layer >= config.layers),
        )


def _layer_of(tensor: TensorInfo) -> int | None:
    match = _BLOCK.match(tensor.name)
    return int(match[1]) if match else None


def _recurrent(config: ModelConfig) -> Recurrent | None:
    delta = config.delta
    return Recurrent(delta.value_heads, delta.size, delta.key_heads, delta.inner) if delta else None


def _experts(config: ModelConfig, sizes: _Sizes) -> Experts | None:
    experts = config.experts
    if experts is None:
        return None
    return Experts(experts.count, experts.used, experts.inner, layer_bytes=-(-sizes.experts // config.layers))


def _text(file: GgufFile, key: str, most: int) -> str:
    value = file.metadata.get(key, "")
    return shown(value, most) if isinstance(value, str) else ""


def shown(text: str, most: int) -> str:
    """One line of printable letters: names come from strangers."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * most])
    return " ".join(printable.split())[:most]


def _slug(label: str) -> str:
    """Lower-case letters, digits, dots and single dashes: fit for a folder and for a room's messages."""
    slug = re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")[:40].strip("-.")
    return slug or "model"
