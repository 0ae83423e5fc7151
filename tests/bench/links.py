"""Round trips of frames over slow and lossy networks: ``python -m tests.bench.links [--stripes 4] [--count 100]``.

Both ends are in this process, over real connections on 127.0.0.1 whose datagrams are delayed and dropped. A cell is
median / 99th percentile in milliseconds of a frame's way there and back.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics

from tests.links.pair import Pair, pair, percentile
from tests.links.shaper import Shape, shaped
from tests.room.loopback import offer_loopback

SIZES = {"4.6 KB": 4_600, "10 KB": 10_240, "16 KB": 16_384, "64 KB": 65_536}
DELAYS_MS = (0, 5, 20, 50)
LOSSES = (0.0, 0.01, 0.05, 0.15)
WARM = 5


async def measure(ends: Pair, size: int, count: int) -> list[float]:
    for _ in range(WARM):
        await ends.echo(size)
    return [await ends.echo(size) for _ in range(count)]


async def row(delay_ms: float, loss: float, stripes: int, count: int, jitter_ms: float) -> str:
    cells: list[str] = []
    with shaped(Shape(delay=delay_ms / 1000, loss=loss, jitter=jitter_ms / 1000)):
        async with pair(stripes) as ends:
            for size in SIZES.values():
                took = await measure(ends, size, count)
                cells.append(f"{1000 * statistics.median(took):7.1f} / {1000 * percentile(took, 0.99):7.1f}")
    return f"{delay_ms:>5} ms {loss:>5.0%} | " + " | ".join(cells)


async def hop(stripes: int, count: int) -> str:
    """The figure a room is held to: one way, 10 KB, 1 % of loss."""
    with shaped(Shape(delay=0.005, loss=0.01)):
        async with pair(stripes) as ends:
            took = [await ends.hop(SIZES["10 KB"]) for _ in range(count)]
    return f"one way, 10 KB, 5 ms, 1 % loss: p99 {1000 * percentile(took, 0.99):.0f} ms of {count}"


async def run(stripes: int, count: int, jitter_ms: float, delays: list[float], losses: list[float]) -> None:
    print(
        f"{stripes} connections a link, {count} frames a cell, jitter {jitter_ms} ms, median / p99 ms, there and back"
    )
    print(f"{'one way':>8} {'loss':>5} | " + " | ".join(f"{name:>17}" for name in SIZES))
    for loss in losses:
        for delay in delays:
            print(await row(delay, loss, stripes, count, jitter_ms), flush=True)
    print(await hop(stripes, 5 * count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stripes", type=int, default=4)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jitter", type=float, default=0.0, help="ms on top of the delay, 0 to so much")
    parser.add_argument("--delay", type=float, nargs="*", default=list(DELAYS_MS), help="ms one way")
    parser.add_argument("--loss", type=float, nargs="*", default=list(LOSSES), help="share, 0.01 is 1 %%")
    options = parser.parse_args()
    offer_loopback()
    asyncio.run(run(options.stripes, options.count, options.jitter, options.delay, options.loss))


if __name__ == "__main__":
    main()
