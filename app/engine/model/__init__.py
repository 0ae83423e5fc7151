"""A model's tensors on the GPU: planned first, then loaded matrix by matrix."""

from app.engine.model.extents import part_extents, tensor_extents
from app.engine.model.loader import Cancelled, LoadCancelled, Loaded, WeightLoader
from app.engine.model.plan import WeightPlan, plan_weights
from app.engine.model.weights import (
    AttentionMixer,
    DeltaMixer,
    DenseFfn,
    Draft,
    ExpertFfn,
    Layer,
    Weights,
)

__all__ = [
    "AttentionMixer", "Cancelled", "DeltaMixer", "DenseFfn", "Draft", "ExpertFfn", "Layer", "LoadCancelled",
    "Loaded", "WeightLoader", "WeightPlan", "Weights", "part_extents", "plan_weights",
    "tensor_extents",
]  # fmt: skip
