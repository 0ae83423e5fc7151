"""Weights over a TLS connection of their own: who is met there, what is damaged, what is resumed. Real sockets."""

from __future__ import annotations

import asyncio
import hashlib
import random
import socket
import ssl
import struct
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiortc import RTCCertificate

from app.core.clock import VirtualClock
from app.core.errors import LinkError
from app.engine.types import Part
from app.models.ranges import Span
from app.models.shelf import Shelf
from app.models.table import ModelTable
from app.room import messages as m
from app.room.certificate import der_of, fingerprint_of, new_certificate
from app.room.link import PeerLink
from app.room.ports import Message
from app.room.weights import bulk, door
from app.room.weights.bulk import BulkClient, Question
from app.room.weights.ends import ends_of, worth_dialing
from app.room.weights.exchange import WeightExchange
from app.room.weights.lenders import DirectSource, MessageSource
from app.room.weights.pacer import DOWN, FASTEST, FIRST, SLOWEST, Pacer
from app.room.weights.tls import client_context, is_pinned, server_context
from tests.engine.models import Shape, write_model
from tests.room.lending import Lent, Sink, connect, drive, outcome, record_of, sources
from tests.room.loopback import use_loopback
from tests.room.rtc_pair import linked_pair
from tests.room.world import Network

CONTENT = random.Random(9).randbytes(9_500_000)
SPAN = Span(1_000, 9_400_001)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))


class Two:
    """One asks, one lends, both with certificates."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.network = Network(VirtualClock(100.0))
        self.asker = Lent("asker", self.network, record_of(content, "asker"), new_certificate())
        self.lender = Lent("lender", self.network, record_of(content, "lender"), new_certificate())
        self.link = connect(self.asker, self.lender)

    @property
    def devices(self) -> tuple[Lent, Lent]:
        return self.asker, self.lender

    @property
    def door(self) -> door.Door:
        assert self.lender.exchange._door
        return self.lender.exchange._door

    async def source(self) -> DirectSource:
        first = (await sources(self.network, *self.devices))[0]
        assert isinstance(first, DirectSource)
        return first

    async def fetch(self, source: Any, span: Span = SPAN) -> Any:
        """The bytes, or the error."""
        sink = Sink()
        work = source.fetch(self.asker.record.files[0], span, sink.put)
        failed = await outcome(self.network, work, *self.devices)
        return failed if failed is not None else bytes(sink.data)

    async def close(self) -> None:
        for device in self.devices:
            await device.exchange.close()


@pytest.fixture
async def two() -> AsyncGenerator[Two]:
    two = Two()
    two.lender.put_whole(CONTENT)
    yield two
    await two.close()


async def test_ranges_come_over_one_connection_and_the_link_carries_none(two: Two) -> None:
    source = await two.source()
    assert two.door.port == 0, "closed until somebody asks"
    assert await two.fetch(source) == CONTENT[SPAN.lo : SPAN.hi]
    assert await two.fetch(source, Span(5, 6)) == CONTENT[5:6]
    assert sum(isinstance(each, m.DirectAsk) for each in two.lender.heard) == 1
    assert not any(isinstance(each, m.WeightPart) for each in two.asker.heard)


async def test_the_model_host_lends_directly(two: Two) -> None:
    two.asker.host = "lender"
    found = await sources(two.network, *two.devices)
    assert [type(source) for source in found] == [DirectSource]


@pytest.mark.parametrize("why", ["not ours", "relay", "unknown path", "another network", "no certificate"])
async def test_only_ours_on_this_network_are_reached_directly(two: Two, why: str) -> None:
    for device in two.devices:
        match why:
            case "not ours":
                device.foreign = {"asker", "lender"}
            case "another network":
                device.peer_address = "93.184.216.34"
            case "unknown path":
                device.links[0].path = "unknown"
            case "relay":
                device.links[0].path = "relay"
            case _:
                device.exchange._door = None
    found = await sources(two.network, *two.devices)
    assert not any(isinstance(source, DirectSource) for source in found)
    two.link.send(m.encode(m.DirectAsk("x", der_of(two.asker.certificate or new_certificate()))))
    for _ in range(50):
        two.network.deliver()
        await asyncio.sleep(0.001)
    assert [each.miss for each in two.asker.heard if isinstance(each, m.DirectOffer)] == [True]


async def test_an_offer_with_another_certificate_than_the_links_is_refused(two: Two) -> None:
    source = await two.source()
    other = new_certificate()
    two.asker.peer_fingerprints["lender"] = fingerprint_of(other)
    failed = await two.fetch(source)
    assert isinstance(failed, LinkError)
    assert "certificate" in failed.what
    assert not two.door._connections


async def test_a_question_with_another_certificate_than_the_links_is_missed(two: Two) -> None:
    source = await two.source()
    two.lender.peer_fingerprints["asker"] = fingerprint_of(new_certificate())
    failed = await two.fetch(source)
    assert isinstance(failed, LinkError)
    assert two.door.port == 0


async def admitted(two: Two) -> tuple[int, RTCCertificate, RTCCertificate]:
    """The open door's port, the asker's and the lender's certificate."""
    mine, theirs = two.asker.certificate, two.lender.certificate
    assert mine is not None
    assert theirs is not None
    return two.door.admit(der_of(mine)), mine, theirs


def client(port: int, own: RTCCertificate, expected: RTCCertificate) -> BulkClient:
    return BulkClient("127.0.0.1", port, client_context(own, der_of(expected)), fingerprint_of(expected))


async def test_who_shows_another_certificate_gets_no_byte(two: Two) -> None:
    port, _mine, theirs = await admitted(two)
    served: list[object] = []
    two.door._read = lambda *asked: served.append(asked) or b""  # type: ignore[assignment]
    stranger = new_certificate()

    def try_it() -> None:
        connection = client(port, stranger, theirs)
        connection.fetch(two.asker.url, SPAN, lambda _data: None)

    with pytest.raises(LinkError):
        await asyncio.to_thread(try_it)
    with pytest.raises(LinkError):
        await asyncio.to_thread(client, port, two.asker.certificate, stranger)
    assert not served


async def test_who_shows_no_certificate_gets_no_byte(two: Two) -> None:
    port, _mine, _theirs = await admitted(two)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    question = msgspec.json.encode(Question(two.asker.url, 0, 10))

    def try_it() -> bytes:
        with socket.create_connection(("127.0.0.1", port), 5) as raw, context.wrap_socket(raw) as connection:
            connection.sendall(struct.pack(">I", len(question)) + question)
            return connection.recv(10)

    with pytest.raises(ssl.SSLError):
        await asyncio.to_thread(try_it)


async def test_a_certificate_for_another_purpose_is_not_enough() -> None:
    """The right certificates with another protocol name: the connection was not made for weights."""
    one, other = new_certificate(), new_certificate()
    near, far = socket.socketpair()
    context = server_context(other, [der_of(one)])
    context.set_alpn_protocols(["something-else/1"])

    def accept() -> None:
        with context.wrap_socket(far, server_side=True) as connection:
            assert not is_pinned(connection, [fingerprint_of(one)])

    with client_context(one, der_of(other)).wrap_socket(near, do_handshake_on_connect=False) as connection:
        waiting = asyncio.create_task(asyncio.to_thread(accept))
        await asyncio.to_thread(connection.do_handshake)
        await waiting
        assert not is_pinned(connection, [fingerprint_of(other)])


@pytest.mark.parametrize(
    "question",
    [
        b"",
        b"\x7f\xff\xff\xff",
        struct.pack(">I", 5) + b"{}{}{",
        struct.pack(">I", 2) + b"{}",
        *(
            struct.pack(">I", len(text)) + text
            for text in (
                b'{"url":"../../m.gguf","lo":0,"hi":9}',
                b'{"url":"U","lo":-5,"hi":9}',
                b'{"url":"U","lo":9,"hi":9}',
                b'{"url":"U","lo":0,"hi":99999999999999}',
                b'{"url":"U","lo":9499990,"hi":9500001}',
                b'{"url":"U","lo":0,"hi":9,"path":"/etc/passwd"}',
            )
        ),
    ],
)
async def test_questions_that_make_no_sense_end_or_are_answered_with_nothing(two: Two, question: bytes) -> None:
    port, mine, theirs = await admitted(two)
    url = two.asker.url.encode()
    text = question[4:].replace(b'"U"', b'"' + url + b'"')
    if text != question[4:]:
        question = struct.pack(">I", len(text)) + text

    def ask() -> bytes:
        context = client_context(mine, der_of(theirs))
        with socket.create_connection(("127.0.0.1", port), 5) as raw, context.wrap_socket(raw) as connection:
            connection.sendall(question or b"\0")
            bulk.end(connection) if not question else None
            return connection.recv(100)

    assert await asyncio.to_thread(ask) in (b"", bulk.NOT_HERE)


async def test_ranges_not_held_are_said_to_be_missing_and_the_rest_still_comes(two: Two) -> None:
    two.lender.put_whole(b"")
    two.lender.put_ranges(CONTENT, Span(0, 5_000_000))
    source = await two.source()
    assert isinstance(await two.fetch(source, Span(4_999_999, 5_000_001)), LinkError)
    assert await two.fetch(source, Span(4_000_000, 5_000_000)) == CONTENT[4_000_000:5_000_000]


class Imposter:
    """In the lender's place behind the right certificate: says what a test wants."""

    def __init__(self, two: Two, *said: bytes) -> None:
        assert two.lender.certificate
        assert two.asker.certificate
        self._context = server_context(two.lender.certificate, [der_of(two.asker.certificate)])
        self._said = said
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="imposter", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self._listener.settimeout(10)
        with self._listener:
            raw, _address = self._listener.accept()
            raw.settimeout(10)
            with self._context.wrap_socket(raw, server_side=True) as connection:
                connection.recv(1000)
                for data in self._said:
                    connection.sendall(data)


def block(data: bytes, shown: bytes | None = None) -> bytes:
    return struct.pack(">I", len(data)) + hashlib.sha256(shown or data).digest() + data


SAID: dict[str, tuple[bytes, ...]] = {
    "damaged": (bulk.HERE, block(b"x" * 100, b"y" * 100)),
    "too long": (bulk.HERE, block(b"x" * 101)),
    "empty": (bulk.HERE, block(b"")),
    "dies midway": (bulk.HERE, block(b"x" * 60)),
    "dies in a block": (bulk.HERE, block(b"x" * 100)[:50]),
    "nothing": (),
    "nonsense": (b"\x07",),
    "not here": (bulk.NOT_HERE,),
}


@pytest.mark.parametrize("kind", SAID)
async def test_what_arrives_wrong_is_an_error_and_not_used(two: Two, kind: str) -> None:
    imposter, sink = Imposter(two, *SAID[kind]), Sink()
    assert two.asker.certificate
    assert two.lender.certificate

    def fetch() -> None:
        connection = client(imposter.port, two.asker.certificate, two.lender.certificate)
        connection.fetch("u", Span(0, 100), sink.put)

    with pytest.raises(LinkError):
        await asyncio.to_thread(fetch)
    assert bytes(sink.data) == (b"x" * 60 if kind == "dies midway" else b"")


async def test_a_lender_that_goes_silent_is_left(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "IDLE", 0.3)
    two.door._read = lambda *_asked: (threading.Event().wait(1) and b"") or b""
    assert isinstance(await two.fetch(await two.source()), LinkError)


async def test_a_cancelled_fetch_ends_its_connection(two: Two) -> None:
    source, sink = await two.source(), Sink()
    two.lender.answering = True
    two.lender.exchange.pacer.rate = 200_000.0
    task = asyncio.create_task(source.fetch(two.asker.record.files[0], SPAN, sink.put))
    with pytest.raises(TimeoutError):
        await drive(two.network, asyncio.wait_for(asyncio.shield(task), 0.5), *two.devices)
    task.cancel()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()
    count = len(sink.data)
    await asyncio.sleep(0.1)
    assert len(sink.data) == count, "nothing is written after the end"


async def test_a_device_that_left_is_cut_off(two: Two) -> None:
    source = await two.source()
    assert await two.fetch(source, Span(0, 10)) == CONTENT[:10]
    two.lender.exchange.link_closed(two.lender.links[0])
    assert isinstance(await two.fetch(source, Span(0, 10)), LinkError)


async def test_the_door_shuts_when_nobody_came_for_a_while(two: Two) -> None:
    port, _mine, _theirs = await admitted(two)
    two.network.clock.advance(door.SHUT_AFTER)
    two.lender.exchange.tick()
    await asyncio.sleep(0.05)
    assert two.door.port == 0
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(socket.create_connection, ("127.0.0.1", port), 5)
    assert two.door.admit(der_of(new_certificate())) != 0


async def test_a_load_is_resumed_with_what_is_missing_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.models.http_ranges.locate", _nowhere)
    monkeypatch.setattr("app.models.parts.HEADER_FIRST", 1 << 16)
    content = write_model(tmp_path / "m.gguf", Shape(vocab=4096)).read_bytes()
    two = Two(content)
    two.lender.put_ranges(content, Span(0, 3_000_000))
    shelf, everything = Shelf(ModelTable((two.asker.record,))), Part(0, 4, embed=True, head=True)

    def provided() -> Any:
        return shelf.provide_part("asker", everything, lambda _t: None, two.asker.exchange.lenders())

    assert isinstance(await outcome(two.network, provided(), *two.devices, speed=0.001), LinkError)
    two.lender.put_whole(content)
    asked: list[Span] = []
    read = two.door._read
    two.door._read = lambda url, span: (asked.append(span), read(url, span))[1]
    path = await drive(two.network, provided(), *two.devices, speed=0.001)
    assert path.read_bytes() == content
    assert min(span.lo for span in asked) == 3_000_000
    await two.close()


async def test_without_a_direct_way_the_messages_carry_it(two: Two) -> None:
    two.lender.addresses = ("192.0.2.77",)
    found = await sources(two.network, *two.devices)
    assert [type(source) for source in found] == [DirectSource, MessageSource]


async def test_a_real_link_knows_whom_to_meet_and_where(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """WebRTC on loopback: fingerprints and the address come from the link itself."""
    use_loopback(monkeypatch)
    assert two.asker.certificate
    assert two.lender.certificate
    async with linked_pair(two.asker.certificate, two.lender.certificate) as (near, far):
        sink = Sink()
        asker, lender = (
            WeightExchange(replace(device.exchange._ports, ends=ends_of, links=lambda link=link: [link]))
            for device, link in ((two.asker, near), (two.lender, far))
        )
        for exchange, link in ((asker, near), (lender, far)):
            link.on_message = lambda raw, e=exchange, k=link: _given(e, k, raw)
        (source, *_others) = await asker.lenders().sources(two.asker.record.files[0])
        assert isinstance(source, DirectSource)
        await source.fetch(two.asker.record.files[0], SPAN, sink.put)
        assert bytes(sink.data) == CONTENT[SPAN.lo : SPAN.hi]
        for exchange in (asker, lender):
            await exchange.close()


def _given(exchange: WeightExchange, link: PeerLink, raw: Message) -> None:
    message = m.decode(raw)
    assert message is not None
    assert exchange.heard(link, message)


async def _nowhere(_source: object) -> Any:
    raise LinkError("There is no internet here.")


def test_only_local_addresses_are_dialed() -> None:
    offered = ("127.0.0.1", "10.0.0.7", "8.8.8.8", "224.0.0.1", "0.0.0.0", "::1", "nonsense", "fe80::1%eth0")
    assert worth_dialing(offered, "10.0.0.9") == ["10.0.0.9", "10.0.0.7", "fe80::1%eth0"]
    assert worth_dialing(offered, "93.184.216.34") == []
    assert worth_dialing((), "127.0.0.1") == ["127.0.0.1"]
    assert worth_dialing(offered, "") == []


def paced(pacer: Pacer, clock: VirtualClock, count: int, size: int = 64 << 10) -> float:
    """Bytes a second over so many writes."""
    began = clock.now()
    for _ in range(count):
        clock.advance(pacer.delay(size))
    return count * size / max(clock.now() - began, 1e-9)


def test_nothing_is_held_back_while_nobody_waits_for_an_answer() -> None:
    clock = VirtualClock(50.0)
    assert paced(Pacer(lambda: False, clock), clock, 1000) > 1e12


def test_the_rate_follows_the_round_trips() -> None:
    clock, told = VirtualClock(50.0), list[float]()
    pacer = Pacer(lambda: True, clock)
    pacer.on_rate = told.append
    for _ in range(5):
        pacer.measured(0.001)
    assert not told, "no weights were on the way"
    assert paced(pacer, clock, 1000) == pytest.approx(FIRST, rel=0.01)
    pacer.measured(0.004)
    assert pacer.rate == pytest.approx(FIRST * DOWN)
    assert paced(pacer, clock, 1000) == pytest.approx(FIRST * DOWN, rel=0.01)
    pacer.measured(0.0011)
    assert FIRST * DOWN < pacer.rate < FIRST
    for _ in range(50):
        paced(pacer, clock, 2)
        pacer.measured(0.5)
    assert pacer.rate == SLOWEST
    assert told[-1] == SLOWEST


def test_a_rate_grows_only_while_it_is_used_and_every_answer_starts_anew() -> None:
    clock, answering = VirtualClock(50.0), [True]
    pacer = Pacer(lambda: answering[0], clock)
    pacer.measured(0.001)
    paced(pacer, clock, 1)
    clock.advance(0.5)
    pacer.measured(0.001)
    assert pacer.rate == FIRST, "hardly anything was sent"
    for _ in range(60):
        paced(pacer, clock, 200)
        pacer.measured(0.001)
    assert pacer.rate == FASTEST
    answering[0] = False
    paced(pacer, clock, 1)
    answering[0] = True
    paced(pacer, clock, 1)
    assert pacer.rate == FIRST
