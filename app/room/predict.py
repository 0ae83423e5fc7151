"""How many words a second a deal would give, before anything of it is loaded.

A word goes round once: every device runs its layers, the model host its head, and between two devices lie the way and
the handling of a frame. What is not known makes the whole forecast unknown. Drafts are left out, and so are the keys
and values of a long conversation: the figure is that of plain words at the beginning of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from app.models.table import ModelRecord
from app.room.events import Member
from app.room.meta import OURS, Meta
from app.room.planner import Deal

EFFICIENCY = 0.75
"""Share of a GPU's copy speed at which weights are read (docs/benchmarks.md, "Predicted and measured")."""
LAUNCH_MS, MIXTURE_LAUNCH_MS = 0.035, 0.06
"""What the kernels of a layer take beside reading weights."""
DEVICE_MS = 1.8
"""What a device takes for any number of layers: recording the work, waiting for it, reading its result back."""
HOP_MS = 1.5
"""What both ends of a hop take for a frame beyond a ping's way."""
LEAST_SHARE = 0.1
SOFTWARE = ("llvmpipe", "lavapipe", "swiftshader", "basic render")


@dataclass(frozen=True)
class Known:
    """What the device ``me`` knows of a room: seconds to a device and back by peer id, ms a layer by model and name."""

    me: str = ""
    round_trips: Mapping[str, float] = field(default_factory=dict[str, float])
    layer_ms: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])

    def of(self, model: str) -> Mapping[str, float]:
        return self.layer_ms.get(model, {})

    def away(self, id: str) -> float | None:
        """Seconds there and back."""
        return 0.0 if id == self.me else self.round_trips.get(id)


def layer_reads(record: ModelRecord) -> float:
    """Bytes of a layer's weights that one word reads: of a mixture's experts only those that run."""
    experts = record.experts
    idle = experts.layer_bytes * (1 - experts.used / experts.count) if experts else 0.0
    return record.layer_bytes - idle


def head_bytes(record: ModelRecord) -> int:
    return record.output_bytes or record.embed_bytes


def layer_ms(record: ModelRecord, ms: float, layers: int, *, head: bool = False) -> float:
    """Milliseconds a layer on a device that took ``ms`` a word for ``layers`` of them, with ``head`` for that, too."""
    own = max(ms - DEVICE_MS, ms * LEAST_SHARE)
    return own / (layers + (head_bytes(record) / layer_reads(record) if head else 0.0))


def gpu_speed(meta: Meta) -> float:
    """Measured bytes a millisecond; 0 where kernels are not ours, and for a processor that plays a GPU."""
    played = any(word in meta.gpu.lower() for word in SOFTWARE)
    return 0.0 if played or meta.native != OURS else EFFICIENCY * meta.gbps * 1e6


@dataclass(frozen=True)
class Forecast:
    """Of one model over ``members``, whom a deal's indices name."""

    record: ModelRecord
    members: Sequence[Member]
    known: Known

    def words_per_second(self, dealt: Deal) -> float | None:
        ms = self.word_ms(dealt)
        return 1000 / ms if ms else None

    def word_ms(self, dealt: Deal) -> float | None:
        """Milliseconds a word takes; None while something of it is unknown, or experts lie in RAM."""
        if not dealt.fits or any(dealt.parkings):
            return None
        devices = (self._device_ms(i, layers) for i, layers in zip(dealt.used, dealt.assigned, strict=True))
        return _sum([*devices, self._head_ms(dealt.used[0]), *self._ways(dealt.used)])

    @cached_property
    def layer_ms(self) -> tuple[float | None, ...]:
        """Of each member: as measured with this model, else what reading a layer's weights takes."""
        return tuple(self._layer_ms(member) for member in self.members)

    def _layer_ms(self, member: Member) -> float | None:
        measured, speed = self.known.of(self.record.key).get(member.name, 0.0), gpu_speed(member.meta)
        if measured > 0:
            return measured
        launches = MIXTURE_LAUNCH_MS if self.record.experts else LAUNCH_MS
        return layer_reads(self.record) / speed + launches if speed else None

    def _device_ms(self, i: int, layers: int) -> float | None:
        ms = self.layer_ms[i]
        return None if ms is None else DEVICE_MS + layers * ms

    def _head_ms(self, host: int) -> float | None:
        speed, ms = gpu_speed(self.members[host].meta), self.layer_ms[host]
        if speed:
            return head_bytes(self.record) / speed
        return None if ms is None else ms * head_bytes(self.record) / layer_reads(self.record)

    def _ways(self, used: Sequence[int]) -> list[float | None]:
        """Round the chain and back. A way between two others is at most the sum of their ways to this device."""
        if len(used) == 1:
            return []
        away = [self.known.away(self.members[i].id) for i in used]
        return [_way(here, there) for here, there in zip(away, [*away[1:], away[0]], strict=True)]


def rate(words_per_second: float) -> str:
    """As shown: two figures are as much as a forecast is good for."""
    two = float(f"{words_per_second:.2g}")
    return f"{two:.0f} tok/s" if two >= 10 else f"{two:.1f} tok/s"


def _way(here: float | None, there: float | None) -> float | None:
    """Half of both round trips, in ms, and the handling of a frame."""
    return None if here is None or there is None else 1000 * (here + there) / 2 + HOP_MS


def _sum(parts: Iterable[float | None]) -> float | None:
    total = 0.0
    for part in parts:
        if part is None:
            return None
        total += part
    return total
