"""Drawing the next token: one pure function in float64, the same alone, in a room, plain and verified."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from app.core.errors import GpuError
from app.engine.types import Candidates, Sampling

MAX_TOP_K = 64


def choose(candidates: Candidates, sampling: Sampling, position: int) -> int:
    """The next id for a column at absolute ``position``.

    Temperature 0 takes the first maximum. Otherwise the best ``top_k`` (1..64) are cut by ``top_p`` and
    ``min_p``, weighed by softmax at the temperature, and one uniform keyed by (seed, position) walks
    them from the best down. Raises GpuError when the row holds numbers that are not finite.
    """
    if candidates.non_finite or not len(candidates.ids):
        raise GpuError(
            "A graphics processor in this chain computed numbers that are not finite.",
            "Ask again; if it repeats, start the model again without that device.",
        )
    if sampling.temperature <= 0:
        return candidates.best
    weights = _weights(candidates, sampling)
    walk = np.cumsum(weights) / weights.sum()
    place = int(np.searchsorted(walk, uniform(sampling.seed, position), side="right"))
    return int(candidates.ids[min(place, len(weights) - 1)])


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that depends on nothing but the seed and the absolute position."""
    digest = hashlib.blake2b(f"{seed}:{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def _weights(candidates: Candidates, sampling: Sampling) -> NDArray[np.float64]:
    count = max(1, min(sampling.top_k, MAX_TOP_K, len(candidates.ids)))
    logits = candidates.logits[:count].astype(np.float64)
    weights = np.exp((logits - logits[0]) / sampling.temperature)
    shares = weights / weights.sum()
    inside = np.cumsum(shares) - shares < max(sampling.top_p, 1e-9)
    inside &= shares >= sampling.min_p * shares[0]
    return np.where(inside, weights, 0.0)
