"""Small random models, written with the gguf package, so that exactness tests carry their own data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import gguf
import numpy as np

from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.selftest import random_matrix
from app.engine.weights.reference import dequantise


@dataclass(frozen=True)
class Shape:
    """``types`` overrides the type of tensors whose name ends so; others are ``matrix``.

    With ``experts`` each layer has so many, ``inner`` wide, and a column is routed to ``used`` of them.
    ``deviation`` is that of the weights; 0 takes them as they come, several hundredfold for some formats.
    """

    family: str = "llama"
    layers: int = 4
    hidden: int = 256
    inner: int = 512
    heads: int = 4
    kv_heads: int = 2
    head: int = 64
    vocab: int = 512
    context: int = 1024
    tied: bool = True
    matrix: TensorType = TensorType.Q8_0
    types: dict[str, TensorType] = field(default_factory=dict)
    experts: int = 0
    used: int = 2
    deviation: float = 0.0


def write_model(path: Path, shape: Shape, seed: int = 1) -> Path:
    """A whole GGUF with a byte vocabulary of single characters, ids 0 and 1 being control tokens."""
    writer = gguf.GGUFWriter(str(path), shape.family)
    _write_metadata(writer, shape)
    rng = np.random.default_rng(seed)
    for name, *rows, columns in _matrices(shape):
        _add_matrix(writer, shape, name, rows, columns, int(rng.integers(1 << 30)))
    for name, size in _vectors(shape):
        scale = 0.1 if name.endswith("bias") else 0.05
        base = 0.0 if name.endswith("bias") else 1.0
        writer.add_tensor(name, (base + scale * rng.normal(size=size)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_metadata(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head)
    writer.add_value_length(shape.head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    if shape.experts:
        writer.add_expert_count(shape.experts)
        writer.add_expert_used_count(shape.used)
        writer.add_expert_feed_forward_length(shape.inner)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    tokens = ["<|end|>", "<|start|>", *[chr(256 + i) for i in range(shape.vocab - 2)]]
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, *[1] * (shape.vocab - 2)])
    writer.add_token_merges([])
    writer.add_eos_token_id(0)


def _matrices(shape: Shape) -> list[tuple[str, *tuple[int, ...]]]:
    """Names and sizes, slowest axis first."""
    q, kv = shape.heads * shape.head, shape.kv_heads * shape.head
    found: list[tuple[str, *tuple[int, ...]]] = [("token_embd.weight", shape.vocab, shape.hidden)]
    if not shape.tied:
        found.append(("output.weight", shape.vocab, shape.hidden))
    for i in range(shape.layers):
        found += [
            (f"blk.{i}.attn_q.weight", q, shape.hidden),
            (f"blk.{i}.attn_k.weight", kv, shape.hidden),
            (f"blk.{i}.attn_v.weight", kv, shape.hidden),
            (f"blk.{i}.attn_output.weight", shape.hidden, q),
        ]
        found += _experts(shape, i) if shape.experts else _dense(shape, i)
    return found


def _dense(shape: Shape, layer: int) -> list[tuple[str, *tuple[int, ...]]]:
    wide, narrow = (shape.inner, shape.hidden), (shape.hidden, shape.inner)
    return [(f"blk.{layer}.ffn_{n}.weight", *size) for n, size in (("gate", wide), ("up", wide), ("down", narrow))]


def _experts(shape: Shape, layer: int) -> list[tuple[str, *tuple[int, ...]]]:
    stacks = [(name.replace(".weight", "_exps.weight"), shape.experts, *size) for name, *size in _dense(shape, layer)]
    return [(f"blk.{layer}.ffn_gate_inp.weight", shape.experts, shape.hidden), *stacks]


def _vectors(shape: Shape) -> list[tuple[str, int]]:
    found = [("output_norm.weight", shape.hidden)]
    for i in range(shape.layers):
        found += [(f"blk.{i}.attn_norm.weight", shape.hidden), (f"blk.{i}.ffn_norm.weight", shape.hidden)]
        if shape.family == "qwen2":
            sizes = {"q": shape.heads, "k": shape.kv_heads, "v": shape.kv_heads}
            found += [(f"blk.{i}.attn_{n}.bias", count * shape.head) for n, count in sizes.items()]
        if shape.family in ("qwen3", "qwen3moe"):
            found += [(f"blk.{i}.attn_q_norm.weight", shape.head), (f"blk.{i}.attn_k_norm.weight", shape.head)]
    return found


def _add_matrix(writer: gguf.GGUFWriter, shape: Shape, name: str, rows: list[int], columns: int, seed: int) -> None:
    """A router is always F32, as in published files."""
    usual = TensorType.F32 if name.endswith("ffn_gate_inp.weight") else shape.matrix
    kind = next((t for end, t in shape.types.items() if name.endswith(end)), usual)
    deviation = shape.deviation or (0.06 if BLOCKS[kind].values == 1 else 0.0)
    scale = deviation / _deviation(kind) if deviation else 0.02
    data = random_matrix(kind, math.prod(rows), columns, seed, scale)
    writer.add_tensor(name, data.view(np.uint8).reshape(*rows, -1), raw_dtype=gguf.GGMLQuantizationType(int(kind)))


@cache
def _deviation(kind: TensorType) -> float:
    """Of a format's random weights at a scale of 1."""
    return float(dequantise(kind, random_matrix(kind, 64, 1024, 0, 1.0), 64, 1024).std())


Kinds = Callable[[str, np.ndarray], TensorType | None]


def rewrite(source: Path, path: Path, kinds: Kinds) -> Path:
    """A copy of a GGUF whose tensors are stored as ``kinds(name, values)`` says; None leaves one as it is."""
    reader = gguf.GGUFReader(str(source))
    writer = gguf.GGUFWriter(str(path), reader.fields["general.architecture"].contents())
    for name, key in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            writer.add_key_value(name, key.contents(), key.types[0], key.types[-1] if len(key.types) > 1 else None)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        kind = kinds(tensor.name, values)
        stored = tensor.tensor_type if kind is None else gguf.GGMLQuantizationType(int(kind))
        data = tensor.data if kind is None else gguf.quants.quantize(values, stored)
        writer.add_tensor(tensor.name, np.ascontiguousarray(data), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def as_floats(source: Path, path: Path) -> Path:
    """The twin of a model: the same numbers, all stored as F32, as the gguf package reads them."""
    return rewrite(source, path, lambda _name, _values: TensorType.F32)
