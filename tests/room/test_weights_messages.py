"""Weights by control messages: order, window, ends, and peers that keep to nothing; on a virtual clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

import pytest

from app.core.clock import VirtualClock
from app.core.errors import LinkError, ProtocolError
from app.engine.types import Part
from app.models.ranges import Span
from app.models.shelf import Shelf
from app.models.table import ModelTable
from app.room import messages as m
from app.room.weights.asking import IDLE, PART, WINDOW
from app.room.weights.lending import MOST_LOANS
from tests.engine.models import Shape, write_model
from tests.room.lending import Lent, Sink, connect, drive, outcome, record_of, sources
from tests.room.world import Network

CONTENT = random.Random(7).randbytes(3_000_000)
SPAN = Span(100_000, 2_700_001)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))


class Two:
    """One asks, one lends."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.network = Network(VirtualClock(100.0))
        self.asker = Lent("asker", self.network, record_of(content, "asker"))
        self.lender = Lent("lender", self.network, record_of(content, "lender"))
        self.link = connect(self.asker, self.lender)
        self.far = self.lender.links[0]

    @property
    def devices(self) -> tuple[Lent, Lent]:
        return self.asker, self.lender

    async def fetch(self, span: Span = SPAN, *, speed: float = 0.0) -> Any:
        """The bytes, or the error."""
        sink, url = Sink(), self.asker.url
        work = self.asker.exchange._asking.fetch(self.link, url, span, sink.put)
        failed = await outcome(self.network, work, *self.devices, speed=speed)
        return failed if failed is not None else bytes(sink.data)

    def answered_by(self, *parts: m.Message | dict[str, Any]) -> None:
        """In the lender's place: these answers to the first question, whatever it was."""

        def hear(raw: Any) -> None:
            if raw["t"] == "ai-wget":
                for part in parts:
                    said = part if isinstance(part, dict) else m.encode(part)
                    self.far.send({**said, "id": raw["id"]})

        self.far.on_message = hear

    def bytes_sent(self) -> int:
        """By the lender, in parts."""
        return sum(len(data) for raw in self.far.sent if isinstance(data := raw.get("data"), bytes))

    def sent(self, kind: type[m.Message]) -> list[Any]:
        return [message for message in self.lender.heard if isinstance(message, kind)]


@pytest.fixture
async def two() -> AsyncGenerator[Two]:
    two = Two()
    yield two
    for device in two.devices:
        await device.exchange.close()


async def test_a_range_comes_in_parts_in_order_and_is_acknowledged(two: Two) -> None:
    two.lender.put_whole(CONTENT)
    assert await two.fetch() == CONTENT[SPAN.lo : SPAN.hi]
    two.network.deliver()
    (request,) = two.sent(m.WeightRequest)
    assert (request.lo, request.hi, request.win) == (SPAN.lo, SPAN.hi - 1, WINDOW)
    assert request.id.startswith("asker:")
    parts = [p for p in two.asker.heard if isinstance(p, m.WeightPart)]
    assert [p.off for p in parts[:-1]] == list(range(0, SPAN.size, PART))
    assert max(len(p.data or b"") for p in parts) == PART
    assert parts[-1].done
    acks = two.sent(m.WeightAck)
    assert acks[-1].got == SPAN.size
    assert not any(ack.cancel for ack in acks)


async def test_no_more_than_the_window_is_on_the_way(two: Two) -> None:
    two.lender.put_whole(CONTENT)
    window = 4 * PART
    two.asker.take(two.link)
    two.link.on_message = lambda _raw: None
    two.link.send(m.encode(m.WeightRequest("x:1", two.asker.url, 0, len(CONTENT) - 1, win=window)))
    await drive(two.network, _turns(100))
    assert two.bytes_sent() == window
    two.link.send(m.encode(m.WeightAck("x:1", got=PART)))
    await drive(two.network, _turns(100))
    assert two.bytes_sent() == window + PART
    two.link.send(m.encode(m.WeightAck("x:1", got=10**9)))
    await drive(two.network, _turns(100))
    assert two.bytes_sent() <= 2 * window + PART, "a boast is cut to what was sent"


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0.001)


async def test_without_a_window_everything_comes_at_once(two: Two) -> None:
    two.lender.put_whole(CONTENT)
    two.link.on_message = lambda _raw: None
    two.link.send(m.encode(m.WeightRequest("old:1", two.asker.url, 0, len(CONTENT) - 1)))
    await drive(two.network, _turns(300))
    assert two.bytes_sent() == len(CONTENT)
    assert two.far.sent[-1] == {"t": "ai-wpart", "id": "old:1", "done": 1}


async def test_a_silent_asker_is_given_up_and_a_cancel_ends_a_loan(two: Two) -> None:
    two.lender.put_whole(CONTENT)
    two.link.on_message = lambda _raw: None
    lending = two.lender.exchange._lending
    for end in ("silence", "cancel", "gone"):
        two.link.send(m.encode(m.WeightRequest(f"{end}:1", two.asker.url, 0, len(CONTENT) - 1, win=PART)))
        await drive(two.network, _turns(50))
        assert lending._loans
        if end == "silence":
            two.network.clock.advance(IDLE)
            two.lender.exchange.tick()
        elif end == "cancel":
            two.link.send(m.encode(m.WeightAck("cancel:1", cancel=True)))
        else:
            two.link.close()
        await drive(two.network, _turns(50))
        assert not lending._loans, end


def parts(*sizes: int, step: int | None = None) -> Iterable[m.WeightPart]:
    at = 0
    for size in sizes:
        yield m.WeightPart("", at, bytes(size))
        at += size if step is None else step


SMALL = Span(10, 10 + 3 * PART)
BAD: dict[str, list[Any]] = {
    "missing": [m.WeightPart("", miss=True)],
    "out of order": [m.WeightPart("", PART, bytes(PART)), m.WeightPart("", 0, bytes(PART))],
    "repeated": list(parts(PART, PART, step=0)),
    "a gap": list(parts(PART, PART, step=PART + 1)),
    "too long a part": list(parts(PART + 1)),
    "empty": [m.WeightPart("", 0, b""), m.WeightPart("", 0, b"")],
    "more than asked": list(parts(PART, PART, PART, 1)),
    "short": [*parts(PART, PART), m.WeightPart("", done=True)],
    "after its end": [*parts(PART, PART), m.WeightPart("", done=True), m.WeightPart("", 2 * PART, bytes(PART))],
    "nothing": [],
    "no end": list(parts(PART, PART, PART)),
    "stops": list(parts(PART)),
    "miss midway": [*parts(PART), m.WeightPart("", miss=True)],
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_device_that_keeps_to_nothing_is_left(two: Two, kind: str) -> None:
    two.answered_by(*BAD[kind])
    before = two.network.clock.now()
    assert isinstance(await two.fetch(SMALL, speed=0.05), LinkError)
    assert two.network.clock.now() - before < IDLE + 5
    assert not two.asker.exchange._asking._asks
    assert {"t": "ai-wack", "id": "asker:1", "cancel": 1} in two.link.sent


async def test_a_window_that_is_not_kept_to_ends_the_range(two: Two) -> None:
    count = WINDOW // PART + 1
    two.answered_by(*parts(*[PART] * count))
    assert isinstance(await two.fetch(Span(0, 2 * WINDOW)), LinkError)


async def test_offsets_may_count_from_the_start_of_the_file(two: Two) -> None:
    data = CONTENT[SMALL.lo : SMALL.hi]
    said = [m.WeightPart("", SMALL.lo + at, data[at : at + PART]) for at in range(0, len(data), PART)]
    two.answered_by(*said, m.WeightPart("", done=True))
    assert await two.fetch(SMALL) == data


async def test_only_the_device_that_was_asked_is_listened_to(two: Two) -> None:
    third = Lent("third", two.network, record_of(CONTENT, "third"))
    link = connect(third, two.asker)
    two.far.on_message = lambda _raw: None
    for part in parts(PART, PART, PART):
        link.send({**m.encode(part), "id": "asker:1"})
    assert isinstance(await two.fetch(SMALL, speed=0.05), LinkError)
    await third.exchange.close()


async def test_a_lender_that_dies_midway_fails_the_range_at_once(two: Two) -> None:
    two.answered_by(*parts(PART))
    hear = two.far.on_message

    def then_die(raw: Any) -> None:
        hear(raw)
        two.far.close("died")

    two.far.on_message = then_die
    before = two.network.clock.now()
    assert isinstance(await two.fetch(SMALL), LinkError)
    assert two.network.clock.now() == before


@pytest.mark.parametrize(
    ("lo", "hi"), [(0, len(CONTENT)), (5, 4), (0, 2**50), (len(CONTENT), len(CONTENT)), (700_000, 1_300_000)]
)
async def test_ranges_not_held_are_missed(two: Two, lo: int, hi: int) -> None:
    two.lender.put_ranges(CONTENT, Span(0, 1_000_000), Span(1_200_000, 3_000_000))
    two.link.send(m.encode(m.WeightRequest("x:1", two.asker.url, lo, hi, win=WINDOW)))
    await drive(two.network, _turns(30))
    assert two.far.sent[-1].get("miss") == 1


NAMES = ("", "m.gguf", "../../m.gguf", "/etc/passwd", "file:///etc/passwd", "sha256:", "lender/m.gguf", "x" * 4000)


@pytest.mark.parametrize("url", [*NAMES, "https://huggingface.co/a/b/resolve/main/../main/m.gguf"])
async def test_a_name_leads_to_a_file_of_the_table_or_nowhere(two: Two, url: str) -> None:
    two.lender.put_whole(CONTENT)
    two.link.send(m.encode(m.WeightRequest("x:1", url, 0, 9)))
    two.link.send(m.encode(m.InventoryRequest(url)))
    await drive(two.network, _turns(30))
    assert [raw.get("miss") for raw in two.far.sent if raw["t"] == "ai-wpart"] == [1]
    assert [raw["have"] for raw in two.far.sent if raw["t"] == "ai-inv"] == [[]]


async def test_more_questions_than_anybody_needs_are_missed(two: Two) -> None:
    two.lender.put_whole(CONTENT)
    two.link.on_message = lambda _raw: None
    for number in range(3 * MOST_LOANS):
        two.link.send(m.encode(m.WeightRequest(f"x:{number}", two.asker.url, 0, 2 * PART, win=PART)))
    await drive(two.network, _turns(50))
    assert len(two.lender.exchange._lending._loans) == MOST_LOANS
    assert sum(1 for raw in two.far.sent if raw.get("miss")) == 2 * MOST_LOANS


@pytest.mark.parametrize("path", ["direct", "relay", "unknown"])
@pytest.mark.parametrize("relay", [False, True], ids=["no relay", "relay set up"])
async def test_weights_never_cross_a_relay(two: Two, path: str, relay: bool) -> None:
    two.lender.put_whole(CONTENT)
    for device in two.devices:
        device.relay, device.links[0].path = relay, path
    goes = path == "direct" or (path == "unknown" and not relay)
    assert bool(await sources(two.network, two.asker, two.lender)) == goes
    two.link.send(m.encode(m.WeightRequest("x:1", two.asker.url, 0, 9)))
    await drive(two.network, _turns(30))
    (answer, *_rest) = [raw for raw in two.far.sent if raw["t"] == "ai-wpart"]
    assert bool(answer.get("miss")) != goes


async def test_what_is_held_is_told_tensor_by_tensor(tmp_path: Path) -> None:
    content = write_model(tmp_path / "m.gguf", Shape()).read_bytes()
    two = Two(content)
    two.lender.put_whole(content)
    have = (await drive(two.network, two.asker.exchange.inventories(two.asker.url)))["lender"]
    assert have[0] == f"0-{len(content) - 1}"
    assert len(have) == 39
    two.lender.put_whole(b"")
    assert await drive(two.network, two.asker.exchange.inventories(two.asker.url)) == {}
    for device in two.devices:
        await device.exchange.close()


async def test_inventories_are_waited_for_a_moment_only(two: Two) -> None:
    two.far.on_message = lambda _raw: None
    before = two.network.clock.now()
    assert await sources(two.network, two.asker) == []
    assert 1.5 <= two.network.clock.now() - before < 2


async def test_a_long_inventory_is_cut_and_nonsense_in_it_ignored(two: Two) -> None:
    have = ["nonsense", "9-5", "-1-5", "0-99", *[f"{i}-{i}" for i in range(1000, 60_000, 2)]]
    two.far.on_message = lambda raw: two.far.send({"t": "ai-inv", "url": raw["url"], "have": have})
    (source,) = await sources(two.network, two.asker)
    held = await source.held(two.asker.record.files[0])
    assert held.covers(Span(0, 100))
    assert len(held.spans) == 20_000 - 3
    with pytest.raises(ProtocolError):
        m.decode({"t": "ai-inv", "url": "", "have": ["1-1"] * 200_000})


async def test_the_model_host_is_not_asked_and_strangers_give_whole_ranges(two: Two) -> None:
    two.lender.put_whole(CONTENT)
    two.asker.host = "lender"
    assert await sources(two.network, two.asker, two.lender) == []
    two.asker.host = "another"
    two.asker.foreign = {"lender"}
    (source,) = await sources(two.network, two.asker, two.lender)
    assert not source.merges


async def test_a_device_named_in_the_deal_is_dialed_for_ten_seconds(two: Two) -> None:
    third = Lent("third", two.network, record_of(CONTENT, "third"))
    third.put_whole(CONTENT)
    load = m.Load("m", (0, 1), 64, inv={"third": (f"0-{len(CONTENT) - 1}",), "gone": ("0-9",)})
    two.asker.reachable["third"] = third
    before = two.network.clock.now()
    found = await sources(two.network, two.asker, two.lender, third, load=load)
    assert [source._link.peer_id for source in found] == ["third"]
    assert 10 <= two.network.clock.now() - before < 13
    await third.exchange.close()


async def test_a_load_takes_its_layers_from_another_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.models.http_ranges.locate", _nowhere)
    monkeypatch.setattr("app.models.parts.HEADER_FIRST", 1 << 16)
    content = write_model(tmp_path / "m.gguf", Shape()).read_bytes()
    two = Two(content)
    two.lender.put_whole(content)
    shelf, told = Shelf(ModelTable((two.asker.record,))), []
    work = shelf.provide_part("asker", Part(1, 3), told.append, two.asker.exchange.lenders())
    path = await drive(two.network, work, *two.devices, speed=0.001)
    assert path.stat().st_size == len(content)
    assert told[-1].done == told[-1].total
    everything = Part(0, 4, embed=True, head=True)
    work = shelf.provide_part("asker", everything, told.append, two.asker.exchange.lenders())
    whole = await drive(two.network, work, *two.devices, speed=0.001)
    assert whole.read_bytes() == content
    for device in two.devices:
        await device.exchange.close()


async def _nowhere(_source: object) -> Any:
    raise LinkError("There is no internet here.")
