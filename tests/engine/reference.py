"""A hybrid model's layers in NumPy float64, from the file's own weights (spec: engine §4, oracles §4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.arch import Mixer, ModelConfig
from app.engine.gguf import GgufFile
from app.engine.ops import delta
from app.engine.weights.reference import dequantise

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """One model; layers take and give [n, hidden] from position 0."""

    file: GgufFile
    config: ModelConfig

    def tensor(self, name: str) -> Array:
        """[rows, columns] of a tensor, a stack's experts one after another."""
        info = self.file.tensor(name)
        return dequantise(info.kind, self.file.read(info), info.rows, info.columns).astype(np.float64)

    def embed(self, ids: list[int]) -> Array:
        return self.tensor("token_embd.weight")[ids]

    def layer(self, index: int, x: Array) -> tuple[Array, Array | None]:
        """The layer's output, and the last state of a recurrent one."""
        prefix, state = f"blk.{index}.", None
        normed = self._norm(x, prefix + "attn_norm.weight")
        if self.config.mixers[index] is Mixer.ATTENTION:
            mixed = self._attention(prefix, normed)
        else:
            mixed, state = self._delta(prefix, normed)
        x = x + mixed
        normed = self._norm(x, f"{prefix}{self.config.family.ffn_norm}.weight")
        return x + self._mixture(prefix, normed), state

    def logits(self, x: Array) -> Array:
        head = "token_embd.weight" if self.config.tied else "output.weight"
        return self._norm(x, "output_norm.weight") @ self.tensor(head).T

    def _norm(self, x: Array, name: str) -> Array:
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.config.epsilon) * self.tensor(name)[0]

    def _attention(self, prefix: str, x: Array) -> Array:
        heads, n = self.config.heads, len(x)
        both = (x @ self.tensor(prefix + "attn_q.weight").T).reshape(n, heads.heads, 2, heads.size)
        q = self._turned(self._norm(both[:, :, 0], prefix + "attn_q_norm.weight"))
        k = (x @ self.tensor(prefix + "attn_k.weight").T).reshape(n, heads.kv_heads, heads.size)
        k = self._turned(self._norm(k, prefix + "attn_k_norm.weight"))
        v = (x @ self.tensor(prefix + "attn_v.weight").T).reshape(n, heads.kv_heads, heads.size)
        out, later = np.empty_like(q), np.triu(np.ones((n, n), bool), 1)
        for h in range(heads.heads):
            scores = q[:, h] @ k[:, h // heads.group].T / np.sqrt(heads.size)
            scores[later] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, h] = weights / weights.sum(axis=1, keepdims=True) @ v[:, h // heads.group]
        out /= 1 + np.exp(-both[:, :, 1])
        return out.reshape(n, -1) @ self.tensor(prefix + "attn_output.weight").T

    def _turned(self, x: Array) -> Array:
        half = self.config.heads.rotary // 2
        theta = np.arange(len(x))[:, None] * self.config.rope_base ** (-np.arange(half) / half)
        cos, sin = np.cos(theta)[:, None], np.sin(theta)[:, None]
        out = x.copy()
        out[..., :half] = x[..., :half] * cos - x[..., half : 2 * half] * sin
        out[..., half : 2 * half] = x[..., :half] * sin + x[..., half : 2 * half] * cos
        return out

    def _delta(self, prefix: str, x: Array) -> tuple[Array, Array]:
        shape = self.config.delta
        assert shape
        names = ("attn_qkv", "attn_gate", "ssm_beta", "ssm_alpha")
        mixed = np.concatenate([x @ self.tensor(f"{prefix}{name}.weight").T for name in names], axis=1)
        taps = self.tensor(prefix + "ssm_conv1d.weight").reshape(shape.channels, shape.taps)
        a, dt, norm = (self.tensor(prefix + name)[0] for name in ("ssm_a", "ssm_dt.bias", "ssm_norm.weight"))
        out, state = delta.reference(mixed, taps, a, dt, norm, shape)
        return out @ self.tensor(prefix + "ssm_out.weight").T, state

    def _mixture(self, prefix: str, x: Array) -> Array:
        shape = self.config.experts
        assert shape
        logits = x @ self.tensor(prefix + "ffn_gate_inp.weight").T
        order = np.argsort(-logits, axis=1, kind="stable")[:, : shape.used]
        chosen = np.take_along_axis(logits, order, axis=1)
        weights = np.exp(chosen - chosen.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        gate, up, down = (
            self.tensor(f"{prefix}ffn_{name}_exps.weight").reshape(shape.count, -1, columns)
            for name, columns in (("gate", x.shape[1]), ("up", x.shape[1]), ("down", shape.inner))
        )
        out = np.zeros_like(x)
        for expert in range(shape.count):
            rows, slots = np.nonzero(order == expert)
            out[rows] += weights[rows, slots, None] * _ffn(x[rows], gate[expert], up[expert], down[expert])
        shared = [self.tensor(f"{prefix}ffn_{name}_shexp.weight") for name in ("gate", "up", "down")]
        share = 1 / (1 + np.exp(-(x @ self.tensor(prefix + "ffn_gate_inp_shexp.weight")[0])))
        return out + share[:, None] * _ffn(x, shared[0], shared[1], shared[2])


def _ffn(x: Array, gate: Array, up: Array, down: Array) -> Array:
    g = x @ gate.T
    return (g / (1 + np.exp(-g)) * (x @ up.T)) @ down.T
