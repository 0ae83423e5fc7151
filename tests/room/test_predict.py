"""Forecasts of a deal's speed, what is dealt because of them, and how they compare with what a room then does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from app.core.clock import VirtualClock
from app.engine.types import ColumnClass, Floats
from app.models.table import builtin_table
from app.room import intents as it
from app.room.events import Member
from app.room.meta import OURS, Meta
from app.room.picker import Plan, Screen, Wish, deal_order, model_rows, plan
from app.room.planner import LeftOut, SplitMode
from app.room.predict import DEVICE_MS, Forecast, Known, layer_ms, layer_reads, rate
from app.room.state import ModelRow, Phase, Tried
from tests.room.toy import RECORD, ToyCompute
from tests.room.world import Box, World

GPU = Meta(ua="Device", webgpu=True, native=OURS, gbps=400, contrib_gb=18, max_bind_mb=4096)
OTTER = Member("a", "otter", GPU)
HERON = Member("b", "heron", replace(GPU, contrib_gb=24))
WREN = Member("c", "wren", replace(GPU, gbps=80))
NEAR = {"b": 0.002, "c": 0.002}
DENSE, MIXTURE = builtin_table().get("qwen3.8-27b"), builtin_table().get("qwen3.6-35b-moe")


def planned(*members: Member, trips: Mapping[str, float] = NEAR, **wish: object) -> Plan:
    known = Known("a", trips)
    return plan(MIXTURE, deal_order(members, "a"), replace(Wish(known=known), **wish))  # pyright: ignore[reportArgumentType]


def used(made: Plan) -> list[str]:
    return [made.members[i].name for i in made.deal.used]


def test_the_card_the_figures_were_fitted_on_comes_out_as_measured() -> None:
    """docs/benchmarks.md: decode one by one on the H200, drawn on the processor."""
    card = Member("a", "otter", replace(GPU, gbps=4277, contrib_gb=64))
    for key, measured in (("qwen3-1.7b", 311), ("qwen3.8-27b", 112), ("qwen3.6-35b-moe", 201)):
        told = plan(builtin_table().get(key), (card,), Wish(known=Known("a"))).choice.predicted
        assert told == pytest.approx(measured, rel=0.25), key


def test_a_mixture_reads_only_the_experts_that_run() -> None:
    assert layer_reads(DENSE) == DENSE.layer_bytes
    assert layer_reads(MIXTURE) == pytest.approx(498197568 - 469762048 * 248 / 256)


def test_ways_between_others_are_half_of_both_ways_to_here() -> None:
    made = planned(*(replace(m, meta=replace(m.meta, contrib_gb=10)) for m in (OTTER, HERON, WREN)))
    assert len(used(made)) == 3
    slow = Forecast(MIXTURE, made.members, Known("a", {"b": 0.04, "c": 0.06})).word_ms(made.deal)
    quick = Forecast(MIXTURE, made.members, Known("a", {"b": 0.0, "c": 0.0})).word_ms(made.deal)
    assert slow is not None
    assert quick is not None
    assert slow - quick == pytest.approx(20 + 50 + 30)


@pytest.mark.parametrize(
    ("meta", "trips"),
    [
        (replace(GPU, gbps=0), NEAR),
        (replace(GPU, gpu="llvmpipe (LLVM 15.0.6, 256 bits)"), NEAR),
        (replace(GPU, native="node-dawn"), NEAR),
        (GPU, {}),
    ],
)
def test_what_is_not_known_is_not_predicted_and_dealt_as_ever(meta: Meta, trips: dict[str, float]) -> None:
    made = planned(OTTER, replace(HERON, meta=replace(meta, contrib_gb=24)), trips=trips)
    assert made.choice.predicted is None
    assert used(made) == ["otter", "heron"]
    assert row(made.members, Known("a", trips)).speed == ""


def row(members: tuple[Member, ...], known: Known, tried: tuple[Tried, ...] = ()) -> ModelRow:
    rows = model_rows(builtin_table(), members, "a", Wish(known=known), Screen("a", tried=tried))
    return next(each for each in rows if each.key == MIXTURE.key)


def test_a_slow_device_is_left_out_when_the_model_fits_without_it() -> None:
    far = {"b": 0.002, "c": 0.3}
    wide = replace(WREN, meta=replace(GPU, contrib_gb=30, gbps=500))
    made = planned(OTTER, HERON, wide, trips=far)
    assert used(made) == ["otter", "heron"]
    assert made.deal.out == {2: LeftOut.UNNEEDED}
    assert made.choice.slower == 3
    near = planned(OTTER, HERON, wide, trips=NEAR)
    assert "wren" in used(near)
    words = row(made.members, Known("a", far)).speed
    assert words == f"about {rate(made.choice.predicted or 0)} on 2 devices; 3 would be slower"


def test_alone_is_said_with_its_name() -> None:
    roomy = replace(OTTER, meta=replace(GPU, contrib_gb=40))
    words = row((roomy, HERON), Known("a", {"b": 0.05})).speed
    assert words.startswith("about ")
    assert words.endswith(" on otter alone; 2 devices would be slower")


def test_a_fast_gpu_nearby_is_taken_before_anything_was_measured() -> None:
    roomy = replace(OTTER, meta=replace(GPU, contrib_gb=40, gbps=40))
    quick = replace(HERON, meta=replace(GPU, contrib_gb=40, gbps=900))
    made = planned(roomy, quick)
    assert used(made) == ["otter", "heron"]
    assert made.deal.assigned[0] == 1
    assert used(planned(roomy, quick, trips={"b": 0.4})) == ["otter"]


def test_by_memory_every_device_keeps_its_share() -> None:
    made = planned(OTTER, HERON, WREN, trips={"b": 0.002, "c": 0.9}, split=SplitMode.MEMORY)
    assert used(made) == ["otter", "heron", "wren"]


def test_the_last_answer_takes_the_place_of_the_forecast() -> None:
    shares = (("otter", 30, 20.0), ("heron", 10, 5.0))
    known = Known("a", NEAR)
    assert row((OTTER, HERON), known, (Tried(MIXTURE.key, 17.34, shares),)).speed == "17.3 tok/s in the last answer"
    other = (Tried(MIXTURE.key, 17.34, shares[:1]),)
    assert row((OTTER, HERON), known, other).speed.startswith("about ")


def test_a_measured_layer_is_without_what_a_device_takes_for_any() -> None:
    assert layer_ms(RECORD, 10 + DEVICE_MS, 5) == pytest.approx(2)
    assert layer_ms(RECORD, 0.5, 5) == pytest.approx(0.01)
    assert layer_ms(RECORD, 10 + DEVICE_MS, 5, head=True) < 2


@pytest.mark.parametrize(("words", "shown"), [(1.234, "1.2"), (9.96, "10"), (12.3, "12"), (123.4, "120")])
def test_a_forecast_has_two_figures(words: float, shown: str) -> None:
    assert rate(words) == f"{shown} tok/s"


# -- against a room ------------------------------------------------------------------------------------------


@dataclass
class PacedCompute(ToyCompute):
    """Every layer takes so long on the room's clock."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    layer_s: float = 0.0

    async def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        until = self.clock.now() + self.layer_s * self._loaded().layers
        done = await super().hidden(states, position, kind, sequence)
        while self.clock.now() < until - 1e-9:  # noqa: ASYNC110
            await asyncio.sleep(0)
        return done


class PacedWorld(World):
    """Devices whose layers take these seconds, in the order they come. Every word goes round alone."""

    verifies = 0

    def __init__(self, latency: float, *layer_s: float) -> None:
        super().__init__(latency)
        self._pace = iter(layer_s)

    def compute(self) -> ToyCompute:
        return PacedCompute(clock=self.clock, layer_s=next(self._pace))


def toy_row(box: Box) -> ModelRow:
    return next(each for each in box.state.rows if each.key == RECORD.key)


async def measured(world: PacedWorld, box: Box) -> float:
    """Words a second between the third word and the thirteenth."""
    box.do(it.Start())
    await world.until(lambda: box.state.phase.has_model)
    box.do(it.Ask("How fast?"))

    def words() -> int:
        return len(box.state.live.answer) if box.state.live else 0

    await world.until(lambda: words() >= 3)
    began, had = world.clock.now(), words()
    await world.until(lambda: words() >= had + 10)
    took, got = world.clock.now() - began, words() - had
    box.do(it.Stop())
    await world.until(lambda: box.state.phase is Phase.ONLINE)
    return got / took


@pytest.mark.parametrize(
    ("latency", "layer_s", "pledges"),
    [
        (0.0, (0.2, 0.2), (2.0, 3.0)),
        (0.25, (0.2, 0.4), (2.0, 3.0)),
        (0.5, (0.1, 0.3, 0.2), (1.0, 1.0, 2.0)),
    ],
)
async def test_what_was_learned_predicts_the_next_deal(
    latency: float, layer_s: tuple[float, ...], pledges: tuple[float, ...]
) -> None:
    world = PacedWorld(latency, *layer_s)
    try:
        boxes = await world.room(*pledges)
        otter = boxes[0]
        await world.run(20)
        otter.do(it.ChooseModel(RECORD.key))
        assert toy_row(otter).predicted is None
        first = await measured(world, otter)
        otter.do(it.StopStart())
        await world.until(lambda: otter.state.phase is Phase.ROOM)
        told = toy_row(otter)
        assert told.speed.endswith("in the last answer")
        assert told.predicted == pytest.approx(first, rel=0.25)

        otter.do(it.SetPledge(pledges[0] + 0.5))
        await world.run(1)
        told = toy_row(otter)
        assert told.predicted == pytest.approx(await measured(world, otter), rel=0.25)
        assert sum(device.layers is not None for device in otter.state.devices) <= len(pledges)
    finally:
        await world.close()
