"""The map of a running answer: every device's part of a lap and the network's (spec: rooms §17)."""

from __future__ import annotations

from app.room import messages as m
from app.room.chain import Chain
from app.room.picker import Plan


def room_map(
    planned: Plan, chain: Chain, words_per_second: float, words: int, *, accepted: float | None = None, live: bool
) -> m.RoomMap:
    """The model host first, then the chain, in ms. ``accepted`` is the share of drafts.

    ``live``: the answer is still being written.
    """
    own = m.MapNode(planned.members[0].name, m.layer_words(*planned.deal.ranges[0]), _ms(chain.stats.own), host=True)
    hops = [m.MapNode(hop.name, m.layer_words(*hop.load.range), hop.timings.one) for hop in chain.hops]
    compute = own.ms + sum(node.ms for node in hops)
    lap = _ms(chain.stats.lap)
    stats = m.MapStats(
        tps=round(words_per_second, 1),
        acc=None if accepted is None else round(accepted, 3),
        lap=lap,
        gpu=round(compute, 1),
        net=round(max(0.0, lap - compute), 1) if hops else 0.0,
        n=words,
    )
    return m.RoomMap(nodes=(own, *hops), st=stats, live=live)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
