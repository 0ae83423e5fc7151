"""The door from both sides, without a network: who gets in, who waits, who is turned away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from app.core.clock import VirtualClock
from app.room.admission import HANDSHAKE_S, KEPT_BYTES, KEPT_MESSAGES, MAX_VISITORS, Admission, Waiting
from app.room.binarypack import pack
from app.room.doorstep import Doorstep
from app.room.entry import HELLO_WAIT_S, SILENT_CREATOR_S, Entered, Entry, TurnedAway
from app.room.gate import LOBBY_LIMIT, MAX_PASSES, Credentials, Gate, Verdict, hello_members
from app.room.ports import Message
from app.room.proofs import commitment, new_nonce
from tests.room.fakes import BOUND, FakeLine, carry

CREATOR = "pooled-room-4TKG9P"
HELLO = {"name": "otter", "meta": {"webgpu": True}}


class Door:
    """A creator's door that notes what it tells."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.clock = VirtualClock()
        self.admission = Admission(CREATOR, gate or Gate(), {"name": "creator", "meta": {}, "v": 4}, self.clock)
        self.waiting: list[Waiting] = []
        self.withdrawn: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.admitted: list[tuple[Doorstep, Message, Sequence[Message]]] = []
        self.gates: list[Gate] = []
        self.admission.on_waiting = self.waiting.append
        self.admission.on_withdrawn = self.withdrawn.append
        self.admission.on_refused = lambda peer_id, reason: self.refused.append((peer_id, reason))
        self.admission.on_admitted = lambda line, hello, kept: self.admitted.append((line, hello, kept))
        self.admission.on_gate = self.gates.append


class Knocker:
    """A device at that door."""

    def __init__(self, door: Door, credentials: Credentials, me: str = "device-1", seen: str = BOUND) -> None:
        self.here = FakeLine(CREATOR, dialed=True, binding=seen)
        self.there = FakeLine(me, dialed=False)
        self.digits: list[str] = []
        self.entered: list[Entered] = []
        self.refused: list[TurnedAway] = []
        self.entry = Entry(self.here, me, credentials, HELLO, door.clock)
        self.entry.on_lobby = self.digits.append
        self.entry.on_entered = self.entered.append
        self.entry.on_refused = self.refused.append
        self._door = door

    def knock(self) -> Knocker:
        self._door.admission.arrived(self.there)
        self.entry.start()
        self.carry()
        return self

    def carry(self) -> None:
        carry((self.here, self.there))


def test_key_lets_in_and_issues_a_pass() -> None:
    door = Door()
    device = Knocker(door, Credentials(key=door.admission.gate.key)).knock()
    assert device.entered[0].verdict is Verdict.TRUSTED
    assert device.entered[0].mesh_key == door.admission.gate.mesh_key
    again = Knocker(door, Credentials(pass_text=device.entered[0].pass_text)).knock()
    assert again.entered[0].verdict is Verdict.TRUSTED
    assert again.entered[0].pass_text == "", "a pass that holds is not replaced"
    assert len(door.gates) == 1, "the gate changed once, for the first pass"


def test_without_key_waits_with_equal_digits() -> None:
    door = Door()
    device = Knocker(door, Credentials()).knock()
    assert door.waiting[0].name == "otter"
    assert door.waiting[0].digits == device.digits[0] != ""
    door.admission.allow("device-1")
    device.carry()
    assert device.entered[0].verdict is Verdict.TRUSTED
    assert device.entered[0].pass_text
    assert door.withdrawn == ["device-1"]


def test_digits_differ_with_someone_in_the_middle() -> None:
    door = Door()
    device = Knocker(door, Credentials(), seen=BOUND.replace("00:01", "77:01")).knock()
    assert door.waiting[0].digits != device.digits[0]


def test_key_fails_with_someone_in_the_middle() -> None:
    door = Door()
    device = Knocker(door, Credentials(key=door.admission.gate.key), seen=BOUND.replace("00:01", "77:01")).knock()
    assert not device.entered
    assert door.waiting[0].failed


def test_a_wrong_key_is_no_key() -> None:
    door = Door()
    device = Knocker(door, Credentials(key=new_nonce())).knock()
    assert not device.entered
    assert door.waiting[0].failed


def test_a_proof_is_worth_nothing_on_another_connection() -> None:
    """Whoever hears hello and proof, word for word, gets as far as somebody who holds nothing."""
    door = Door()
    honest = Knocker(door, Credentials(key=door.admission.gate.key)).knock()
    hello, proof = honest.here.said("hello"), honest.here.said("auth-proof")
    for binding in (BOUND, BOUND.replace("00:01", "77:01")):
        line = FakeLine("device-1", dialed=False, binding=binding)
        door.admission.arrived(line)
        line.hear(hello)
        line.hear(proof)
        assert line.said("admit") is None
    assert len(door.admitted) == 1
    assert all(waiting.failed for waiting in door.waiting)


def test_only_the_first_proof_counts() -> None:
    door = Door()
    device = Knocker(door, Credentials(key=new_nonce())).knock()
    for _ in range(100):
        device.there.hear({"t": "auth-proof", "jn": new_nonce(), "kp": "0" * 64})
    assert len(door.waiting) == 1
    assert not door.admitted


def test_the_id_of_a_pass_opens_nothing() -> None:
    """It goes over the wire, and the saved room holds the pass's hash: neither is the pass."""
    door = Door()
    owner = Knocker(door, Credentials(key=door.admission.gate.key)).knock()
    Knocker(door, Credentials(pass_text=new_nonce()), "device-2").knock()
    pid = hello_members(Credentials(pass_text=owner.entered[0].pass_text), new_nonce())["pid"]
    line = FakeLine("device-3", dialed=False)
    door.admission.arrived(line)
    nonce = new_nonce()
    line.hear({**HELLO, "t": "hello", "v": 4, "join": 1, "auth": 1, "jc": commitment(nonce), "pid": pid})
    line.hear({"t": "auth-proof", "jn": nonce, "pp": pid + pid})
    assert len(door.admitted) == 1
    assert [waiting.failed for waiting in door.waiting] == [True, True]


def test_deny_turns_away_and_is_remembered() -> None:
    door = Door()
    device = Knocker(door, Credentials()).knock()
    door.admission.deny("device-1")
    device.carry()
    assert device.refused[0].reason
    assert device.there.ended == "refused"
    second = Knocker(door, Credentials()).knock()
    assert second.refused, "the same device is not asked about again"
    assert len(door.waiting) == 1


def test_impostor_without_the_key_is_left() -> None:
    door = Door(replace(Gate(), ask=False))
    device = Knocker(door, Credentials(key=new_nonce())).knock()
    assert device.entered[0].verdict is Verdict.UNVERIFIED
    liar = Knocker(Door(), Credentials(key=new_nonce()))
    liar.entry.start()
    for message in ({"t": "hello", "v": 4, "gate": 1, "auth": 1}, {"t": "auth", "v": 1, "hn": new_nonce()}):
        liar.here.hear(message)
    liar.here.hear({"t": "admit", "via": "key", "hp": "0" * 64, "mk": "A" * 43})
    assert liar.refused[0].impostor
    assert not liar.entered


def test_creator_that_skips_the_proof_is_unverified() -> None:
    device = Knocker(Door(), Credentials(key=new_nonce()))
    device.entry.start()
    device.here.hear({"t": "hello", "v": 4, "gate": 1, "auth": 1})
    device.here.hear({"t": "admit", "mk": "A" * 43})
    assert device.entered[0].verdict is Verdict.UNVERIFIED


def test_messages_during_the_proof_keep_their_order() -> None:
    door = Door()
    device = Knocker(door, Credentials(key=door.admission.gate.key))
    for number in range(KEPT_MESSAGES + 10):
        device.here.send({"t": "pledge", "gb": number})
    device.knock()
    kept = door.admitted[0][2]
    assert [message["gb"] for message in kept] == list(range(KEPT_MESSAGES))


def test_messages_right_behind_admit_are_kept() -> None:
    door = Door()
    device = Knocker(door, Credentials(key=door.admission.gate.key))
    door.admission.on_admitted = lambda line, _hello, _kept: (
        [line.send({"t": "roster", "n": n}) for n in (1, 2)] and None
    )
    device.knock()
    assert [message["n"] for message in device.entered[0].kept] == [1, 2]


def test_lobby_is_limited() -> None:
    door = Door()
    for number in range(LOBBY_LIMIT):
        Knocker(door, Credentials(), f"device-{number}").knock()
    late = Knocker(door, Credentials(), "device-late").knock()
    assert late.refused
    assert len(door.admission.lobby) == LOBBY_LIMIT


def test_a_flood_of_visitors_is_limited_and_passes() -> None:
    door = Door()
    lines = [FakeLine(f"device-{number}", dialed=False) for number in range(3 * MAX_VISITORS)]
    for line in lines:
        door.admission.arrived(line)
    assert sum(line.open for line in lines) == MAX_VISITORS
    door.clock.advance(HANDSHAKE_S + 1)
    door.admission.tick()
    device = Knocker(door, Credentials(key=door.admission.gate.key), "device-late").knock()
    assert device.entered


def test_what_a_stranger_says_meanwhile_is_kept_up_to_a_size() -> None:
    door = Door()
    device = Knocker(door, Credentials(key=door.admission.gate.key))
    for number in range(KEPT_MESSAGES):
        device.here.send({"t": "pledge", "gb": number, "more": "x" * 8_000})
    device.here.send({"t": "pledge", "gb": float("nan")})
    device.knock()
    kept = door.admitted[0][2]
    assert 0 < sum(len(pack(message)) for message in kept) <= KEPT_BYTES
    assert [message["gb"] for message in kept] == list(range(len(kept)))


def test_long_messages_are_taken_only_from_who_was_let_in() -> None:
    door = Door()
    outside = Knocker(door, Credentials(), "device-2").knock()
    inside = Knocker(door, Credentials(key=door.admission.gate.key)).knock()
    assert not outside.there.trusted
    assert not outside.here.trusted
    assert inside.there.trusted
    assert inside.here.trusted


def test_newer_knock_replaces_the_held_one() -> None:
    door = Door()
    first = Knocker(door, Credentials()).knock()
    Knocker(door, Credentials()).knock()
    assert not first.there.open
    assert len(door.admission.lobby) == 1
    assert door.withdrawn == ["device-1"]


def test_leaving_withdraws_the_request() -> None:
    door = Door()
    device = Knocker(door, Credentials()).knock()
    device.here.send({"t": "leaving"})
    device.carry()
    assert door.withdrawn == ["device-1"]
    assert not door.admission.lobby


def test_pings_are_answered_while_held() -> None:
    door = Door()
    device = Knocker(door, Credentials()).knock()
    device.there.hear({"t": "ping", "ts": 12.5})
    assert device.there.said("pong") == {"t": "pong", "ts": 12.5}


def test_silent_visitor_is_turned_away() -> None:
    door = Door()
    line = FakeLine("device-1", dialed=False)
    door.admission.arrived(line)
    door.clock.advance(HANDSHAKE_S - 0.1)
    door.admission.tick()
    assert not door.refused
    door.clock.advance(0.2)
    door.admission.tick()
    assert door.refused
    assert line.said("bye")


def test_wrong_version_is_told() -> None:
    door = Door()
    line = FakeLine("device-1", dialed=False)
    door.admission.arrived(line)
    line.hear({"t": "hello", "v": 3, "join": 1})
    assert line.said("bye")
    assert not door.admitted


def test_api_client_gets_no_mesh_key() -> None:
    door = Door()
    line = FakeLine("api-1", dialed=False)
    door.admission.set_rules(ask=False, api_clients=True)
    door.admission.arrived(line)
    line.hear({"t": "hello", "v": 4, "join": 1, "meta": {"api": 1, "client": "x"}})
    assert "mk" not in line.said("admit")


def test_device_with_a_key_waits_for_the_creators_hello() -> None:
    device = Knocker(Door(), Credentials(key=new_nonce()))
    device.entry.start()
    assert device.here.said("hello") is None
    device.entry._clock.advance(HELLO_WAIT_S)  # type: ignore[attr-defined]
    device.entry.tick()
    assert device.here.said("hello")["kc"] == 1


def test_creator_without_proofs_is_shown_none() -> None:
    device = Knocker(Door(), Credentials(key=new_nonce(), pass_text=new_nonce()))
    device.entry.start()
    device.here.hear({"t": "hello", "v": 4, "gate": 1, "ask": 1})
    hello = device.here.said("hello")
    assert "kc" not in hello
    assert "pid" not in hello


def test_creator_without_gate_lets_in_at_once() -> None:
    device = Knocker(Door(), Credentials())
    device.entry.start()
    device.here.hear({"t": "hello", "v": 4})
    assert device.entered[0].verdict is Verdict.TRUSTED


@pytest.mark.parametrize(("credentials", "goes_in"), [(Credentials(), True), (Credentials(key="k" * 22), False)])
def test_silent_creator(credentials: Credentials, goes_in: bool) -> None:
    device = Knocker(Door(), credentials)
    device.entry.start()
    device.entry._clock.advance(SILENT_CREATOR_S)  # type: ignore[attr-defined]
    device.entry.tick()
    assert bool(device.entered) == goes_in


def test_bye_with_closed_means_the_room_is_over() -> None:
    device = Knocker(Door(), Credentials())
    device.entry.start()
    device.here.hear({"t": "bye", "closed": 1, "reason": "The room is closed."})
    assert device.refused[0].room_over


@pytest.mark.parametrize(
    "message",
    [
        {"t": "hello", "v": 4, "join": 1, "auth": 1, "jc": ["x"], "meta": 7, "name": {"a": 1}},
        {"t": "hello", "v": 4, "join": 1, "auth": {"x": 1}, "jc": "0" * 64},
        {"t": "hello", "v": "4"},
        {"t": "auth-proof"},
        {"t": 5},
        {"t": "hello", "v": 4, "join": 1, "pid": b"x", "kc": b"y"},
    ],
)
def test_nonsense_never_admits(message: Any) -> None:
    door = Door()
    line = FakeLine("device-1", dialed=False)
    door.admission.arrived(line)
    line.hear(message)
    line.hear({"t": "auth-proof", "jn": 5, "kp": [], "pp": {}})
    assert not door.admitted


def test_old_passes_are_forgotten() -> None:
    gate = Gate()
    for number in range(MAX_PASSES + 3):
        gate = gate.with_pass(f"pass-{number:020}", "otter")
    assert len(gate.passes) == MAX_PASSES
    assert gate.passes[-1].digest == Gate().with_pass(f"pass-{MAX_PASSES + 2:020}", "").passes[0].digest


def test_gate_is_saved_and_read_back() -> None:
    gate = Gate(ask=False).with_pass("p" * 22, "otter")
    assert msgspec.json.decode(msgspec.json.encode(gate), type=Gate) == gate


def test_secrets_are_not_in_representations() -> None:
    gate = Gate().with_pass("p" * 22, "otter")
    text = repr((gate, Credentials("k" * 22, "p" * 22)))
    assert gate.key not in text
    assert gate.mesh_key not in text
    assert "kkkk" not in text
    assert "pppp" not in text
