"""Sizes of a mixture of experts, and the table that says which experts a column goes to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.engine.memory import Slice
from app.engine.ops.matvec import Activations
from app.engine.weights.matrix import Block

MAX_COUNT = 1024
MAX_USED = 16

ROUTE_STRUCT = """
struct Route {
    expert: u32,
    weight: f32,
}
"""


ROUTED = f"""{ROUTE_STRUCT}
override FIRST: u32;
override EXPERTS: u32;
override EXPERT_ROWS: u32;
override USED: u32;
override SLOTS: u32;
override SHARING: u32 = 1u;
"""
"""What a kernel that follows a column's routes declares."""


def one_slot(origin: str) -> str:
    """WGSL of a workgroup that takes one route: its columns, and the row where its expert begins as ``origin``."""
    return f"""    let column = group.z / SHARING;
    let out_column = group.z;
    let expert = routes[group.z / USED * SLOTS + group.z % USED].expert;
    if (expert < FIRST || expert >= FIRST + EXPERTS) {{ return; }}
    let {origin} = (expert - FIRST) * EXPERT_ROWS;"""


@dataclass(frozen=True)
class ExpertShape:
    """Each column goes to the ``used`` best of ``count`` experts of ``inner`` values.

    ``shared_inner`` is the size of the expert that every column goes to, 0 where there is none. Weights are
    a softmax over the chosen experts where they are ``normalised``, else over all.
    """

    count: int
    used: int
    inner: int
    shared_inner: int
    normalised: bool

    @property
    def slots(self) -> int:
        """Routes a column has: the chosen experts, best first, then the shared one."""
        return self.used + (1 if self.shared_inner else 0)

    @property
    def logits(self) -> int:
        """Rows of the router: the experts, then the shared one's gate."""
        return self.count + (1 if self.shared_inner else 0)


def with_shared(shape: ExpertShape) -> ExpertShape:
    """The mixture as its stacks see it when the shared expert is the last of them, and every column's last choice."""
    return replace(shape, count=shape.count + 1, used=shape.used + 1, shared_inner=0)


def check_shape(shape: ExpertShape) -> None:
    """ModelError for mixtures the kernels do not lay out."""
    if not 1 <= shape.count <= MAX_COUNT or not 1 <= shape.used <= min(shape.count, MAX_USED) or shape.inner < 1:
        raise ModelError(
            f"A mixture that uses {shape.used} of {shape.count} experts is not supported.", "Pick another model."
        )


def shared_weights(routes: Slice, shape: ExpertShape) -> Activations:
    """Each column's weight of the shared expert."""
    return Activations(routes, 2 * shape.slots, 2 * shape.used + 1)


def experts_of(block: Block, rows_each: int) -> tuple[int, int]:
    """The first expert of a block of a stack and how many it holds, at ``rows_each`` rows an expert."""
    assert block.first % rows_each == 0, "a block of a stack holds whole experts"
    assert block.rows % rows_each == 0, "a block of a stack holds whole experts"
    return block.first // rows_each, block.rows // rows_each
