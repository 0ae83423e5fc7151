"""What strangers say before they are let in: at the gate, at a link between devices, through a room server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import aiohttp
from aiortc.sdp import SessionDescription

from app.core.clock import VirtualClock
from app.core.errors import LinkError, ProtocolError
from app.room.admission import Admission
from app.room.binarypack import pack
from app.room.certificate import fingerprint_in
from app.room.entry import Entered, Entry
from app.room.gate import Credentials, Gate, Verdict
from app.room.mesh import MeshHandshake
from app.room.peerjs import MAX_ID, read_signal
from app.room.proofs import end_fingerprint
from app.room.rtc import understood
from app.room.signal_server import read_request
from tests.fuzzing.guard import Fault, Target
from tests.fuzzing.mutate import packed, packed_map, text
from tests.fuzzing.wire import apart, read_map, together
from tests.room.fakes import FakeLine

KEY, MESH_KEY, NONCE, DIGEST = "k" * 22, "m" * 43, "n" * 22, "0" * 64
CREATOR = "pooled-room-4TKG9P"
GREETING = {"name": "otter", "meta": {}, "v": 4}
KNOCKS: list[list[dict[str, object]]] = [
    [
        {"t": "hello", "v": 4, "join": 1, "auth": 1, "jc": DIGEST, "kc": 1, "pid": DIGEST[:32], **GREETING},
        {"t": "auth-proof", "jn": NONCE, "kp": DIGEST, "pp": DIGEST},
    ],
    [{"t": "hello", "v": 4, "join": 1, "key": NONCE, "pass": NONCE}, {"t": "pledge", "gb": 4}],
]
ANSWERS: list[list[dict[str, object]]] = [
    [
        {"t": "hello", "v": 4, "gate": 1, "ask": 1, "auth": 1},
        {"t": "auth", "v": 1, "hn": NONCE},
        {"t": "lobby"},
        {"t": "admit", "via": "key", "hp": DIGEST, "pass": NONCE, "mk": "x" * 43},
    ],
    [{"t": "hello", "v": 4, "gate": 1}, {"t": "bye", "reason": "no", "closed": 1}],
]
MESH: list[list[dict[str, object]]] = [[{"t": "hello", "v": 4}, {"t": "mesh", "v": 1, "p": DIGEST}]]
_NAMES = ("v", "join", "auth", "jc", "kc", "pid", "jn", "kp", "pp", "hn", "hp", "via", "mk", "gate", "key", "pass", "p")
_TAGS = ("hello", "auth", "auth-proof", "lobby", "admit", "bye", "mesh", "ping", "pong", "leaving", "roster")
_TEXTS = (NONCE, DIGEST, DIGEST[:32], MESH_KEY, "key", "pass", "open")

SDP = "\r\n".join(
    (
        "v=0", "o=- 1 2 IN IP4 0.0.0.0", "s=-", "t=0 0", "a=group:BUNDLE 0",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "c=IN IP4 0.0.0.0", "a=mid:0", "a=sctp-port:5000",
        "a=max-message-size:262144", "a=candidate:1 1 udp 2130706431 127.0.0.1 50000 typ host",
        "a=ice-ufrag:abcd", "a=ice-pwd:" + "p" * 22, "a=fingerprint:sha-256 " + ":".join(["AB"] * 32),
        "a=setup:actpass", "",
    )
)  # fmt: skip


def _packed(dialogues: list[list[dict[str, object]]]) -> list[bytes]:
    return [together([pack(message) for message in dialogue]) for dialogue in dialogues]


def _dialogue(rng: Random) -> bytes:
    """Messages of a handshake in any order, with likely and unlikely members."""
    parts: list[bytes] = []
    for _ in range(1 + rng.randrange(4)):
        members = {name: _member(rng) for name in _NAMES if rng.random() < 0.3}
        members["v"] = b"\x04" if rng.random() < 0.8 else packed(rng, _NAMES, 4)
        parts.append(packed_map(rng, _NAMES, members | {"t": text(rng.choice(_TAGS))}, 3))
    return together(parts)


def _member(rng: Random) -> bytes:
    return text(rng.choice(_TEXTS)) if rng.random() < 0.5 else packed(rng, _NAMES, 4)


def _said(line: FakeLine, data: bytes) -> None:
    for part in apart(data):
        with suppress(ProtocolError):
            message = read_map(part)
            if message is not None and isinstance(message.get("t"), str):
                line.hear(message)


def _knock(data: bytes) -> object:
    """At a creator's door: whoever holds nothing is not let in."""
    clock, admitted = VirtualClock(), list[object]()
    admission = Admission(CREATOR, Gate(key=KEY, mesh_key=MESH_KEY, legacy=True), GREETING, clock)
    admission.on_admitted = lambda _line, hello, _kept: admitted.append(hello)
    line = FakeLine("device-1", dialed=False)
    admission.arrived(line)
    _said(line, data)
    clock.advance(60)
    admission.tick()
    if admitted:
        raise Fault("a stranger was let in")
    for message in line.history:
        pack(message)
    return True if admission.lobby else None


def _enter(data: bytes) -> object:
    """At a joiner that holds the key: an impostor is never believed."""
    clock, entered = VirtualClock(), list[Entered]()
    line = FakeLine(CREATOR, dialed=True)
    entry = Entry(line, "device-1", Credentials(key=KEY), GREETING, clock)
    entry.on_entered = entered.append
    entry.start()
    _said(line, data)
    clock.advance(60)
    entry.tick()
    if any(one.verdict is Verdict.TRUSTED for one in entered):
        raise Fault("an impostor was trusted")
    return entered[0] if entered else None


def _prove(data: bytes) -> object:
    """Between devices: who does not know the mesh key gets no link."""
    proved: list[object] = []
    line = FakeLine("device-2", dialed=True)
    handshake = MeshHandshake(line, "device-1", MESH_KEY, GREETING, VirtualClock())
    handshake.on_proved = lambda hello, _kept: proved.append(hello)
    handshake.start()
    _said(line, data)
    if proved:
        raise Fault("a stranger was linked")
    return None if line.open else True


def _signal(data: bytes) -> object:
    """A client and a server read the same text. What is taken can be hashed and sent on."""
    said = data.decode(errors="surrogateescape")
    json.dumps(read_request(said)).encode()
    message = read_signal(aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, said, None))
    if message is not None and len(message.source.encode()) > MAX_ID:
        raise Fault("a peer id without bound was taken")
    return message


def _signal_samples() -> Sequence[bytes]:
    payload = {"sdp": {"type": "offer", "sdp": "v=0"}, "connectionId": "dc_1", "label": "dc_1", "type": "data"}
    messages: list[dict[str, object]] = [
        {"type": "OPEN"},
        {"type": "OFFER", "src": "device-1", "dst": CREATOR, "payload": payload},
        {"type": "CANDIDATE", "src": "\ud800", "payload": {"candidate": {"candidate": "x", "sdpMid": "0"}}},
        {"type": "EXPIRE", "src": "a" * 300},
    ]
    return [json.dumps(message).encode() for message in messages] + [b"[" * 60_000, b'{"a":' * 9_000, b"9" * 9_000]


def _described(data: bytes) -> object:
    sdp = data.decode(errors="replace")
    for read in (end_fingerprint, fingerprint_in):
        read(sdp)
    with understood(sdp):
        return SessionDescription.parse(sdp)


TARGETS = [
    Target("gate", lambda: _packed(KNOCKS), _knock, (), _dialogue),
    Target("entry", lambda: _packed(ANSWERS), _enter, (), _dialogue),
    Target("mesh", lambda: _packed(MESH), _prove, (), _dialogue),
    Target("signaling", _signal_samples, _signal),
    Target("session", lambda: [SDP.encode()], _described, (LinkError,)),
]
