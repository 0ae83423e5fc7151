"""The quickest deal: the room's rule, compared with what it would give with fewer devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.room.memory import Need
from app.room.offload import ExpertSizes
from app.room.planner import Deal, Offer, SplitMode, deal
from app.room.predict import Forecast


@dataclass(frozen=True)
class Choice:
    """A deal, the words a second it should give, and how many devices would give fewer (0: nothing to compare)."""

    deal: Deal
    predicted: float | None = None
    slower: int = 0


@dataclass(frozen=True)
class Options:
    """What may be dealt: a need, and what the devices offer, measured layers among it."""

    need: Need
    offers: Sequence[Offer]
    experts: ExpertSizes | None = None

    def without(self, left_out: frozenset[int]) -> Deal:
        return deal(self.need, self.offers, SplitMode.SPEED, self.experts, without=left_out)


def choose(options: Options, mode: SplitMode, forecast: Forecast) -> Choice:
    """The rule's own deal stands by memory, and wherever its speed cannot be told."""
    ruled = deal(options.need, options.offers, mode, options.experts)
    predicted = forecast.words_per_second(ruled)
    if predicted is None or mode is SplitMode.MEMORY:
        return Choice(ruled, predicted)
    best = _quickest([*_fewer(options, ruled, forecast), *_fewer_by_forecast(options, ruled, forecast)], forecast)
    return Choice(best, forecast.words_per_second(best), _slower(options, best, ruled, forecast))


def _fewer(options: Options, ruled: Deal, forecast: Forecast) -> Iterator[Deal]:
    """The deal, then one device fewer each time, the one it is quickest without, while the model still fits."""
    left_out, dealt = frozenset[int](), ruled
    while True:
        yield dealt
        tried = [(options.without(left_out | {i}), i) for i in dealt.used[1:]]
        told = [(ms, i, less) for less, i in tried if (ms := forecast.word_ms(less)) is not None]
        if not told:
            return
        _, gone, dealt = min(told, key=lambda each: each[:2])
        left_out |= {gone}


def _fewer_by_forecast(options: Options, ruled: Deal, forecast: Forecast) -> Iterator[Deal]:
    """The same where unmeasured devices are taken in order of what their GPUs should do."""
    costed = [replace(offer, ms_per_layer=ms) for offer, ms in zip(options.offers, forecast.layer_ms, strict=True)]
    by_forecast = replace(options, offers=costed)
    dealt = by_forecast.without(frozenset())
    if dealt != ruled:
        yield from _fewer(by_forecast, dealt, forecast)


def _quickest(deals: Sequence[Deal], forecast: Forecast) -> Deal:
    """The first of the quickest."""
    return max(deals, key=lambda dealt: forecast.words_per_second(dealt) or 0.0)


def _slower(options: Options, best: Deal, ruled: Deal, forecast: Forecast) -> int:
    """More devices than ``best`` uses, of which it is known that they would give fewer words a second."""
    spread = deal(options.need, options.offers, SplitMode.MEMORY, options.experts)
    most = forecast.words_per_second(best) or 0.0
    for wider in (ruled, spread):
        if len(wider.used) > len(best.used) and (forecast.words_per_second(wider) or most) < most:
            return len(wider.used)
    return 0
