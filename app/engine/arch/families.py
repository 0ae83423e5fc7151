"""What sets the families apart (spec: engine §3, §4; oracles §4)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """``hybrid`` families mix by DeltaNet and gated attention; ``experts`` families route each column to some."""

    interleaved_rope: bool = False
    qkv_bias: bool = False
    head_norms: bool = False
    hybrid: bool = False
    experts: bool = False
    ffn_norm: str = "ffn_norm"


FAMILIES = {
    "llama": Family(interleaved_rope=True),
    "qwen2": Family(qkv_bias=True),
    "qwen3": Family(head_norms=True),
    "qwen3moe": Family(head_norms=True, experts=True),
    "qwen35": Family(head_norms=True, hybrid=True, ffn_norm="post_attention_norm"),
    "qwen35moe": Family(head_norms=True, hybrid=True, experts=True, ffn_norm="post_attention_norm"),
}
