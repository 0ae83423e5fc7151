"""A worker obeys its model host within what it can do, and takes frames from one device only, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from app.core.clock import VirtualClock
from app.core.errors import LinkError
from app.engine.types import ColumnClass
from app.room import messages as m
from app.room.frame import DROP_ALL, Control, Frame, FrameKind
from app.room.halves import pack_halves, unpack_halves
from app.room.ports import Link
from app.room.worker import FRAMES_WAITING, Worker, WorkerPorts
from tests.room.toy import HIDDEN, TABLE, ToyCompute, ToyModel, rounded

GIB = 2**30
LOAD = m.Load(model="toy", range=(3, 6), ctx=64, host="host-id", prev="before")


class Outlet:
    """A link that keeps what is sent."""

    peer_id, open = "after", True

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def send_frame(self, frame: Frame) -> None:
        self.frames.append(frame)


class Bench:
    """A worker with everything around it made up."""

    def __init__(self) -> None:
        self.compute = ToyCompute()
        self.told: list[m.Message] = []
        self.home, self.after = Outlet(), Outlet()
        self.reachable = True
        ports: Any = WorkerPorts(
            me="me",
            compute=self.compute,
            clock=VirtualClock(),
            table=TABLE,
            dial=self.dial,
            tell=self.told.append,
            host_link=lambda: self.home,  # type: ignore[arg-type, return-value]
        )
        self.worker = Worker(ports, lambda: 2 * GIB)
        self.worker.start()

    async def dial(self, peer_id: str, fresh: bool) -> Link:
        if not self.reachable:
            raise LinkError("Out of reach.")
        return self.after  # type: ignore[return-value]

    async def settle(self) -> None:
        for _ in range(400):
            await asyncio.sleep(0)

    async def load(self, load: m.Load = LOAD) -> list[m.Message]:
        self.told.clear()
        self.worker.load(load)
        await self.settle()
        return [message for message in self.told if not isinstance(message, m.LoadShare)]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.worker.close()


def states(columns: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(columns, HIDDEN)).astype(np.float32)


def frame(position: int, columns: int, kind: FrameKind = FrameKind.HIDDEN_BATCH, **more: Any) -> Frame:
    return Frame(kind, position, columns, pack_halves(states(columns, position), "test"), **more)


async def test_it_loads_exactly_what_it_is_told(bench: Bench) -> None:
    assert await bench.load() == [m.Ready(ckpt=True)]
    (request,) = bench.compute.loads
    assert (request.part.lo, request.part.hi, request.context) == (3, 6, 64)
    assert not request.part.embed
    assert not request.part.head
    assert request.pledge == 2 * GIB


@pytest.mark.parametrize(
    "change",
    [{"v": 3}, {"model": "what"}, {"range": (3, 9)}, {"range": (4, 4)}, {"ctx": 0}, {"kv": "q8"}],
    ids=lambda change: next(iter(change)),
)
async def test_it_refuses_what_it_cannot_do(bench: Bench, change: dict[str, Any]) -> None:
    fields = {name: getattr(LOAD, name) for name in LOAD.__struct_fields__}
    (answer,) = await bench.load(m.Load(**{**fields, **change}))
    assert isinstance(answer, m.DeviceError)
    assert answer.load
    assert bench.compute.part is None


async def test_a_next_device_out_of_reach_fails_the_load(bench: Bench) -> None:
    bench.reachable = False
    (answer,) = await bench.load(m.Load(model="toy", range=(0, 3), ctx=64, next="after"))
    assert isinstance(answer, m.DeviceError)
    assert bench.compute.part is None


async def test_the_same_shard_is_kept_and_begins_afresh(bench: Bench) -> None:
    await bench.load()
    for one in (frame(0, 4), frame(4, 2)):
        bench.worker.frame(one, "before")
    await bench.settle()
    assert await bench.load() == [m.Ready(ckpt=True)]
    assert len(bench.compute.loads) == 1
    bench.worker.frame(frame(0, 4), "before")
    await bench.settle()
    assert bench.home.frames[-1].payload == bench.home.frames[0].payload
    assert len(bench.compute.model.rows[3]) == 4


async def test_frames_go_home_with_their_form_and_their_class(bench: Bench) -> None:
    await bench.load()
    reference = ToyModel()
    sent = [
        frame(0, 5, control=Control(reset=True)),
        frame(5, 1, FrameKind.HIDDEN),
        frame(6, 3, spec=True),
    ]
    for one in sent:
        bench.worker.frame(one, "before")
    await bench.settle()
    kinds = [ColumnClass.PROMPT, ColumnClass.STEP, ColumnClass.STEP]
    returns = [FrameKind.RETURN_BATCH, FrameKind.RETURN, FrameKind.RETURN_BATCH]
    assert [got.kind for got in bench.home.frames] == returns
    for one, got, kind in zip(sent, bench.home.frames, kinds, strict=True):
        incoming = unpack_halves(one.payload, HIDDEN)
        expected = rounded(reference.run(incoming, one.position, kind, range(3, 6)))
        assert np.array_equal(unpack_halves(got.payload, HIDDEN), expected)
        assert (got.position, got.columns, got.spec) == (one.position, one.columns, one.spec)
        assert got.control == Control()


async def test_frames_to_the_next_device_keep_their_control_words(bench: Bench) -> None:
    await bench.load(m.Load(model="toy", range=(0, 3), ctx=64, next="after", prev="before"))
    bench.worker.frame(frame(0, 2, control=Control(reset=True)), "before")
    await bench.settle()
    (passed,) = bench.after.frames
    assert (passed.kind, passed.control) == (FrameKind.HIDDEN_BATCH, Control(reset=True))
    assert bench.home.frames == []


async def test_a_frame_without_a_way_on_tells_of_the_lost_link(bench: Bench) -> None:
    """Again with every frame: the model host may have been busy with another loss when it was told first."""
    await bench.load(m.Load(model="toy", range=(2, 4), ctx=64, host="host-id", prev="before", next="after"))
    bench.after.open = False
    bench.told.clear()
    for position in range(2):
        bench.worker.frame(frame(position, 1), "before")
    await bench.settle()
    assert [message for message in bench.told if not isinstance(message, m.Telemetry)] == [m.LinkLost(name="after")] * 2
    assert not bench.after.frames


async def test_strangers_returns_and_floods_are_ignored(bench: Bench) -> None:
    await bench.load()
    bench.worker.frame(frame(0, 2), "stranger")
    bench.worker.frame(frame(0, 2, FrameKind.RETURN_BATCH), "before")
    for _ in range(FRAMES_WAITING + 50):
        bench.worker.frame(frame(0, 1), "before")
    await bench.settle()
    await bench.settle()
    assert bench.compute.prompt_columns == len(bench.home.frames) <= FRAMES_WAITING


@pytest.mark.parametrize("bad", [Frame(FrameKind.HIDDEN, 0, 1, b"odd"), Frame(FrameKind.HIDDEN, 0, 3, bytes(32))])
async def test_a_bad_frame_is_reported_and_the_next_one_runs(bench: Bench, bad: Frame) -> None:
    await bench.load()
    bench.worker.frame(bad, "before")
    bench.worker.frame(frame(0, 1), "before")
    await bench.settle()
    assert any(isinstance(message, m.DeviceError) and not message.load for message in bench.told)
    assert len(bench.home.frames) == 1


async def test_a_given_up_start_frees_the_layers(bench: Bench) -> None:
    bench.compute.slow_load = asyncio.Event()
    assert await bench.load() == []
    bench.worker.stop_load()
    await bench.settle()
    assert not bench.worker.loading
    assert bench.compute.part is None
    bench.worker.frame(frame(0, 1), "before")
    await bench.settle()
    assert bench.home.frames == []


async def test_a_device_left_out_of_the_deal_frees_its_layers(bench: Bench) -> None:
    await bench.load()
    bench.worker.dealt({"otter": "0–5", "heron": "3–5"}, "heron")
    await bench.settle()
    assert bench.compute.part is not None
    bench.worker.dealt({"otter": "0–5"}, "heron")
    await bench.settle()
    assert bench.compute.part is None


async def test_a_changed_neighbour_is_dialed_and_reported(bench: Bench) -> None:
    await bench.load(m.Load(model="toy", range=(0, 3), ctx=64, next="after", prev="before"))
    bench.told.clear()
    bench.worker.next(m.Next(next="after", relink=True, prev="other"))
    await bench.settle()
    assert bench.told == [m.Linked(next="after", ok=True)]
    bench.worker.frame(frame(0, 1), "before")
    bench.worker.frame(frame(0, 1), "other")
    await bench.settle()
    assert len(bench.after.frames) == 1
    bench.reachable = False
    bench.worker.next(m.Next(next="after", relink=True))
    await bench.settle()
    assert bench.told[-1] == m.Linked(next="after", ok=False)


# -- control words of a hybrid ----------------------------------------------------------------------------

HYBRID = m.Load(model="toy-hybrid", range=(3, 6), ctx=64, host="host-id", prev="before")


async def run(bench: Bench, *frames: Frame) -> None:
    for one in frames:
        bench.worker.frame(one, "before")
    await bench.settle()


def after(columns: int) -> Any:
    """States of the first four positions and of these many verified ones, as one device computes them."""
    model = ToyModel()
    one, two = frame(0, 4), frame(4, 5)
    model.run(unpack_halves(one.payload, HIDDEN), 0, ColumnClass.PROMPT, range(3, 6))
    model.run(unpack_halves(two.payload, HIDDEN)[:columns], 4, ColumnClass.STEP, range(3, 6))
    return model


async def test_a_published_host_rolls_back_saves_and_goes_on_in_one_frame(bench: Bench) -> None:
    """Rollback comes first: what is saved has none of the rejected columns."""
    await bench.load(HYBRID)
    await run(bench, frame(0, 4), frame(4, 5, spec=True))
    await run(bench, frame(7, 2, spec=True, control=Control(rollback=2, save=9)))
    assert bench.compute.kept["9"].end == 7
    reference = after(3)
    kept = bench.compute.kept["9"].data.view(np.float32).reshape(3, 7, HIDDEN)
    assert np.array_equal(kept[0], reference.rows[3].data)
    expected = reference.run(unpack_halves(frame(7, 2).payload, HIDDEN), 7, ColumnClass.STEP, range(3, 6))
    assert np.array_equal(unpack_halves(bench.home.frames[-1].payload, HIDDEN), rounded(expected))


async def test_a_rollback_alone_is_only_a_position(bench: Bench) -> None:
    await bench.load(HYBRID)
    await run(bench, frame(0, 4), frame(4, 5, spec=True), frame(5, 1, FrameKind.HIDDEN, control=Control(rollback=0)))
    assert [got.position for got in bench.home.frames] == [0, 4, 5]
    assert not [told for told in bench.told if isinstance(told, m.DeviceError)]


async def test_save_drop_reset_and_load_come_in_this_order(bench: Bench) -> None:
    await bench.load(HYBRID)
    await run(bench, frame(0, 4), frame(4, 2, spec=True, control=Control(save=1)))
    await run(bench, frame(0, 3, control=Control(save=2, drop=(1,), reset=True)))
    assert {name: state.end for name, state in bench.compute.kept.items()} == {"2": 6}
    await run(bench, frame(6, 1, FrameKind.HIDDEN, control=Control(save=3, load=2)))
    assert {name: state.end for name, state in bench.compute.kept.items()} == {"2": 6, "3": 3}
    reference = ToyModel()
    reference.run(unpack_halves(frame(0, 4).payload, HIDDEN), 0, ColumnClass.PROMPT, range(3, 6))
    reference.run(unpack_halves(frame(4, 2).payload, HIDDEN), 4, ColumnClass.STEP, range(3, 6))
    expected = reference.run(unpack_halves(frame(6, 1).payload, HIDDEN), 6, ColumnClass.STEP, range(3, 6))
    assert np.array_equal(unpack_halves(bench.home.frames[-1].payload, HIDDEN), rounded(expected))
    await run(bench, frame(7, 1, FrameKind.HIDDEN, control=Control(drop=(DROP_ALL,))))
    assert bench.compute.kept == {}


async def test_a_state_that_ends_elsewhere_is_not_gone_on_from(bench: Bench) -> None:
    await bench.load(HYBRID)
    await run(bench, frame(0, 4), frame(4, 1, FrameKind.HIDDEN, control=Control(save=1)))
    bench.told.clear()
    await run(bench, frame(9, 1, FrameKind.HIDDEN, control=Control(load=1)))
    await run(bench, frame(4, 1, FrameKind.HIDDEN, control=Control(load=5)))
    complaints = [told.message for told in bench.told if isinstance(told, m.DeviceError)]
    assert [("ends at 4, not at 9" in c, "no 5" in c) for c in complaints] == [(True, False), (False, True)]
    assert len(bench.home.frames) == 2


async def test_a_save_without_room_is_told_and_the_frame_runs(bench: Bench) -> None:
    await bench.load(HYBRID)
    bench.compute.room = 1
    await run(bench, frame(0, 4), frame(4, 1, FrameKind.HIDDEN, control=Control(save=1)))
    await run(bench, frame(5, 1, FrameKind.HIDDEN, control=Control(save=2)))
    assert m.CheckpointsLoaded(slots=(1,), lost=(2,)) in bench.told
    assert len(bench.home.frames) == 3
