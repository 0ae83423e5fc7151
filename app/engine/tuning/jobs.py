"""Which products a part's step columns are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.engine.model.plan import FfnPlan, LayerPlan, WeightPlan
from app.engine.ops.render import has_extra
from app.engine.placement import Epilogue, Job
from app.engine.weights.layout import UNIT, packed_bytes, units
from app.engine.weights.matrix import MatrixPlan


def step_jobs(plan: WeightPlan, widths: Sequence[int], *, head: bool) -> list[Job]:
    """Each once, for the narrowest widths first, and for those that read most bytes a step."""
    counted = Counter(job for job in _all_jobs(plan, head=head) if has_extra(job.kind))
    weight = {job: count * sum(packed_bytes(job.kind, job.rows, UNIT * job.units)) for job, count in counted.items()}
    ordered = sorted(counted, key=weight.__getitem__, reverse=True)
    return [replace(job, width=width) for width in widths for job in ordered]


def _all_jobs(plan: WeightPlan, *, head: bool) -> Iterator[Job]:
    for layer in plan.layers:
        yield from _layer_jobs(layer)
    if head and (matrix := plan.head or plan.embedding):
        yield from _jobs(matrix, Epilogue.STORE)
    if plan.draft:
        yield from _jobs(plan.draft.join, Epilogue.STORE)
        yield from _layer_jobs(plan.draft.layer)


def _layer_jobs(layer: LayerPlan) -> Iterator[Job]:
    for matrix in layer.inputs:
        yield from _jobs(matrix, Epilogue.STORE)
    yield from _jobs(layer.output, Epilogue.ADD)
    if not layer.ffn.router:
        yield from _dense_jobs(layer.ffn, Epilogue.ADD)
    elif layer.ffn.shared:
        yield from _dense_jobs(layer.ffn.shared, Epilogue.WEIGHTED_ADD)


def _dense_jobs(ffn: FfnPlan, down: Epilogue) -> Iterator[Job]:
    """Gate and up rows are joined where they are one matrix in one binding."""
    joined = len(ffn.gate_up) == 1 and len(ffn.gate_up[0].cuts) == 1
    for matrix in ffn.gate_up:
        for job in _jobs(matrix, Epilogue.SWIGLU if joined else Epilogue.STORE):
            yield replace(job, rounded=joined and has_extra(ffn.down.kind))
    yield from _jobs(ffn.down, down)


def _jobs(matrix: MatrixPlan, epilogue: Epilogue) -> Iterator[Job]:
    """One a block, of one column."""
    for lo, hi in matrix.cuts:
        yield Job(matrix.kind, hi - lo, units(matrix.columns), epilogue, 1)
