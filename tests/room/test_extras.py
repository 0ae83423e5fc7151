"""A draft model and saved states: counted where everything fits on the very devices that hold the model anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from app.core.units import GIB
from app.models.table import ModelRecord, builtin_table
from app.room import intents as it
from app.room.checkpoints import Keep, counted_states
from app.room.dealt import own_request
from app.room.events import Member
from app.room.memory import need, resident_bytes
from app.room.meta import OURS, Meta
from app.room.picker import Plan, Wish, deal_order, plan
from app.room.planner import SplitMode
from app.room.state import Phase
from tests.room.test_rooms import ask
from tests.room.toy import OTHER, RECORD, TABLE, ToyCompute
from tests.room.world import EXACT, World

GPU = Meta(ua="Device", webgpu=True, native=OURS, gbps=400, max_bind_mb=4096)
SMALL, DENSE = builtin_table().get("qwen3-0.6b"), builtin_table().get("qwen3-4b")
HYBRID, MIXTURE = builtin_table().get("qwen3.8-27b"), builtin_table().get("qwen3.6-35b-moe")
KEPT = counted_states(2)


def planned(
    record: ModelRecord,
    *lent: float,
    draft: ModelRecord | None = None,
    kept: int = 0,
    split: SplitMode = SplitMode.MEMORY,
) -> Plan:
    """Over devices that lend so many GB, the model host first; by memory all of them are used."""
    members = [Member(id, id, replace(GPU, contrib_gb=gb)) for id, gb in zip("abc", lent, strict=False)]
    return plan(record, deal_order(members, "a"), Wish(split=split, draft=draft, kept=kept))


def least(record: ModelRecord, extra: float = 0.0) -> float:
    """GB one device must lend for it, and a little."""
    needed = need(record, planned(record, 64).context.positions, "f16")
    return (needed.total + needed.reserve + extra) / GIB + 0.01


def test_a_draft_model_is_counted_on_the_model_host_where_it_fits() -> None:
    beside = resident_bytes(SMALL, planned(DENSE, 64).context.positions)
    roomy, tight = planned(DENSE, least(DENSE, beside), draft=SMALL), planned(DENSE, least(DENSE), draft=SMALL)
    assert own_request(roomy).draft == SMALL.key
    assert roomy.deal.held[0] - tight.deal.held[0] == pytest.approx(beside, abs=1)
    assert own_request(tight).draft == ""
    assert tight == planned(DENSE, least(DENSE))


def test_layers_move_away_from_it_but_no_device_is_added() -> None:
    lent = least(DENSE) / 2 + 0.7
    without, beside = planned(DENSE, lent, lent), planned(DENSE, lent, lent, draft=SMALL)
    assert beside.draft == SMALL.key
    assert beside.deal.used == without.deal.used == (0, 1)
    assert beside.deal.assigned[0] < without.deal.assigned[0]
    alone = planned(DENSE, least(DENSE), 8, draft=SMALL, split=SplitMode.SPEED)
    assert alone == planned(DENSE, least(DENSE), 8, split=SplitMode.SPEED)
    assert alone.deal.used == (0,)


def test_a_model_that_does_not_fit_is_as_short_as_without_it() -> None:
    assert planned(DENSE, 2.0, draft=SMALL) == planned(DENSE, 2.0)


def test_saved_states_are_counted_where_they_fit() -> None:
    without, counted = planned(HYBRID, 64), planned(HYBRID, 64, kept=KEPT)
    extra = counted.deal.held[0] - without.deal.held[0]
    state, row = 48 * (6144 * 128 + 3 * 10240) * 4, 65536 + 4096
    assert extra == pytest.approx(KEPT * (state + 4096 * row), rel=1e-3)
    assert planned(HYBRID, least(HYBRID), kept=KEPT) == planned(HYBRID, least(HYBRID))


def test_experts_are_not_parked_to_make_room() -> None:
    for lent, parks in ((16, True), (least(MIXTURE), False)):
        host = Member("a", "a", replace(GPU, contrib_gb=lent, ram_gb=64, offload=True))
        without, counted = (plan(MIXTURE, (host,), Wish(kept=kept)) for kept in (0, KEPT))
        assert any(without.deal.parkings) == parks
        assert counted == without


def test_at_most_one_of_every_other_kind_is_kept_beside_the_answers() -> None:
    assert [counted_states(answers) for answers in (0, 1, 2)] == [0, len(Keep), len(Keep) + 1]


class Drafting(World):
    """A toy whose small model every device has on its disk; it guesses ``a`` for ever."""

    table = TABLE.with_record(msgspec.structs.replace(RECORD, draft=OTHER.key))
    on_disk = (OTHER.key,)

    def compute(self) -> ToyCompute:
        return ToyCompute(small=_letters)


def _letters(_ids: Sequence[int], count: int) -> list[int]:
    return [97] * count


@pytest.mark.parametrize(("lent", "there"), [((12,), True), ((4,), False), ((6, 6), True), ((3, 3), False)])
async def test_a_room_loads_the_draft_model_beside_the_model_hosts_share(lent: tuple[float, ...], there: bool) -> None:
    """And says the same with it as without."""
    world, plain = Drafting(), World()
    answers: list[str] = []
    try:
        for one in (world, plain):
            boxes = await one.room(*lent, settings=replace(EXACT, split=SplitMode.MEMORY))
            boxes[0].do(it.ChooseModel(RECORD.key))
            boxes[0].do(it.Start())
            await one.until(lambda boxes=boxes: boxes[0].state.phase is Phase.ONLINE)
            answers.append(await ask(one, boxes[0], "Hello there."))
        loaded = [load.draft for box in world.boxes.values() for load in box.compute.loads]
        assert loaded == [OTHER.key if there else "", ""][: len(lent)]
        assert bool(world.boxes["otter"].compute.asked) == there
        assert answers[0] == answers[1]
    finally:
        await world.close()
        await plain.close()
