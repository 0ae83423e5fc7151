"""Small random models, written with the gguf package, so that exactness tests carry their own data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np

from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.selftest import random_matrix


@dataclass(frozen=True)
class Shape:
    """``types`` overrides the type of tensors whose name ends so; others are ``matrix``."""

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


def write_model(path: Path, shape: Shape, seed: int = 1) -> Path:
    """A whole GGUF with a byte vocabulary of single characters, ids 0 and 1 being control tokens."""
    writer = gguf.GGUFWriter(str(path), shape.family)
    _write_metadata(writer, shape)
    rng = np.random.default_rng(seed)
    for name, rows, columns in _matrices(shape):
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
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    tokens = ["<|end|>", "<|start|>", *[chr(256 + i) for i in range(shape.vocab - 2)]]
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, *[1] * (shape.vocab - 2)])
    writer.add_token_merges([])
    writer.add_eos_token_id(0)


def _matrices(shape: Shape) -> list[tuple[str, int, int]]:
    q, kv = shape.heads * shape.head, shape.kv_heads * shape.head
    found = [("token_embd.weight", shape.vocab, shape.hidden)]
    if not shape.tied:
        found.append(("output.weight", shape.vocab, shape.hidden))
    for i in range(shape.layers):
        found += [
            (f"blk.{i}.attn_q.weight", q, shape.hidden),
            (f"blk.{i}.attn_k.weight", kv, shape.hidden),
            (f"blk.{i}.attn_v.weight", kv, shape.hidden),
            (f"blk.{i}.attn_output.weight", shape.hidden, q),
            (f"blk.{i}.ffn_gate.weight", shape.inner, shape.hidden),
            (f"blk.{i}.ffn_up.weight", shape.inner, shape.hidden),
            (f"blk.{i}.ffn_down.weight", shape.hidden, shape.inner),
        ]
    return found


def _vectors(shape: Shape) -> list[tuple[str, int]]:
    found = [("output_norm.weight", shape.hidden)]
    for i in range(shape.layers):
        found += [(f"blk.{i}.attn_norm.weight", shape.hidden), (f"blk.{i}.ffn_norm.weight", shape.hidden)]
        if shape.family == "qwen2":
            sizes = {"q": shape.heads, "k": shape.kv_heads, "v": shape.kv_heads}
            found += [(f"blk.{i}.attn_{n}.bias", count * shape.head) for n, count in sizes.items()]
        if shape.family == "qwen3":
            found += [(f"blk.{i}.attn_q_norm.weight", shape.head), (f"blk.{i}.attn_k_norm.weight", shape.head)]
    return found


def _add_matrix(writer: gguf.GGUFWriter, shape: Shape, name: str, rows: int, columns: int, seed: int) -> None:
    kind = next((t for end, t in shape.types.items() if name.endswith(end)), shape.matrix)
    raw = random_matrix(kind, rows, columns, seed)
    if BLOCKS[kind].values == 1:
        scale = np.float32(0.06)
        raw = (raw.view({1: np.float16, 0: np.float32, 30: np.uint16}[int(kind)])) if kind != TensorType.BF16 else raw
        if kind is TensorType.F32:
            raw = (raw * scale).view(np.uint8)
        elif kind is TensorType.F16:
            raw = (raw * scale).astype(np.float16).view(np.uint8)
    data = np.ascontiguousarray(raw).view(np.uint8).reshape(rows, -1)
    writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType(int(kind)))
