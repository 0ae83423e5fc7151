"""The network with faults does what it says, the same every time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.links.pair import percentile
from tests.links.shaper import QUEUE_S, Decisions, Shape, Shaper


class Socket:
    """Notes when what arrives."""

    def __init__(self) -> None:
        self.came: list[tuple[float, bytes]] = []
        self.closing = False

    def sendto(self, data: bytes, _addr: Any) -> None:
        self.came.append((asyncio.get_running_loop().time(), data))

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True


def fates(seed: int, socket: int, shape: Shape) -> list[Any]:
    decisions = Decisions(seed, socket)
    return [decisions.next(shape) for _ in range(2_000)]


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.15])
def test_the_seed_decides_everything(loss: float) -> None:
    shape = Shape(loss=loss, jitter=0.01)
    assert fates(1, 1, shape) == fates(1, 1, shape)
    assert fates(1, 1, shape) != fates(2, 1, shape)
    assert fates(1, 1, shape) != fates(1, 2, shape)
    lost = sum(fate.lost for fate in fates(1, 1, shape)) / 2_000
    assert abs(lost - loss) < 0.4 * loss
    assert all(0 <= fate.jitter <= 0.01 for fate in fates(1, 1, shape))


def test_more_loss_takes_away_and_changes_nothing_else() -> None:
    little, much = fates(1, 1, Shape(loss=0.05)), fates(1, 1, Shape(loss=0.15))
    assert all(more.lost for few, more in zip(little, much, strict=True) if few.lost)


async def _sent(shape: Shape, sizes: list[int], wait: float) -> tuple[float, Shaper, list[tuple[float, bytes]]]:
    shaper, socket = Shaper(shape), Socket()
    transport = shaper.over(socket)
    began = asyncio.get_running_loop().time()
    for number, size in enumerate(sizes):
        transport.sendto(bytes([number]) * size, None)
    await asyncio.sleep(wait)
    return began, shaper, socket.came


async def test_delay_and_jitter_keep_the_order() -> None:
    began, _, came = await _sent(Shape(delay=0.02, jitter=0.02), [1] * 50, 0.3)
    assert [data[0] for _, data in came] == list(range(50))
    assert all(at - began >= 0.02 for at, _ in came)


async def test_a_narrow_pipe_takes_its_time_and_drops_what_does_not_fit() -> None:
    began, shaper, came = await _sent(Shape(rate=100_000), [1_000] * 50, 0.6)
    assert 20 <= len(came) <= 22
    assert shaper.lost == 50 - len(came)
    assert came[-1][0] - began >= QUEUE_S


async def test_nothing_passes_a_blocked_network_and_a_closed_socket() -> None:
    _, shaper, came = await _sent(Shape(blocked=True), [1] * 5, 0.01)
    assert came == []
    assert shaper.lost == 5
    shaper, socket = Shaper(Shape(delay=0.01)), Socket()
    shaper.over(socket).sendto(b"x", None)
    socket.close()
    await asyncio.sleep(0.05)
    assert socket.came == []


async def test_what_is_on_its_way_arrives_after_a_close() -> None:
    socket = Socket()
    transport = Shaper(Shape(delay=0.01)).over(socket)
    transport.sendto(b"farewell", None)
    transport.close()
    transport.sendto(b"too late", None)
    assert transport.is_closing()
    assert not socket.closing
    await asyncio.sleep(0.1)
    assert [data for _, data in socket.came] == [b"farewell"]
    assert socket.closing


def test_percentiles() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2
    assert percentile([float(n) for n in range(1, 101)], 0.99) == 99
    assert percentile([7.0], 0.99) == 7
