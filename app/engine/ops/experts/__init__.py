"""A mixture of experts: routing, the experts of step columns, and those of prompt columns grouped by expert."""

from app.engine.ops.experts.buffers import ExpertBuffers, make_expert_buffers
from app.engine.ops.experts.combine import combine_dispatch
from app.engine.ops.experts.fast import fast_grouped_matmul, fast_step_down, fast_step_matvec, fast_tile
from app.engine.ops.experts.prompt import Groups, grouped_matmul, placement_for, sort_dispatch
from app.engine.ops.experts.reference import mixture_reference, route_reference
from app.engine.ops.experts.route import route_dispatch
from app.engine.ops.experts.shape import ExpertShape, check_shape, shared_weights, with_shared
from app.engine.ops.experts.step import step_down, step_matvec

__all__ = [
    "ExpertBuffers",
    "ExpertShape",
    "Groups",
    "check_shape",
    "combine_dispatch",
    "fast_grouped_matmul",
    "fast_step_down",
    "fast_step_matvec",
    "fast_tile",
    "grouped_matmul",
    "make_expert_buffers",
    "mixture_reference",
    "placement_for",
    "route_dispatch",
    "route_reference",
    "shared_weights",
    "sort_dispatch",
    "step_down",
    "step_matvec",
    "with_shared",
]
