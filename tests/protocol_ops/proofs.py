"""Cases of ``proofs.json``: single proofs, and whole exchanges at the gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.room.codes import is_key
from app.room.gate import (
    Admit,
    Ask,
    Credentials,
    Decision,
    Gate,
    Knock,
    Refuse,
    admit_message,
    decide,
    hello_members,
    judge_admit,
    proof_message,
    wants_proof,
)
from app.room.proofs import (
    Exchange,
    binding,
    commitment,
    end_fingerprint,
    equal,
    fingerprints,
    is_mesh_key,
    is_nonce,
    mesh_proof,
    mesh_transcript,
    new_mesh_key,
    new_nonce,
    pass_hash,
    pass_id,
)
from tests.protocol_ops import Case, check


def _seen(ends: dict[str, list[str]] | None) -> str:
    """The binding of one end's view: its own and the other's fingerprints, or nothing."""
    return binding(ends["local"][0], ends["remote"][0]) if ends else ""


@check("proofs", "sdp")
def check_sdp(case: Case) -> None:
    sdp = case["in"]["sdp"]
    assert fingerprints(sdp) == case["out"]["fingerprints"]
    assert end_fingerprint(sdp) == (case["out"]["end"] or [""])[0]


@check("proofs", "binding")
def check_binding(case: Case) -> None:
    ends = case["in"] or {"local": "", "remote": ""}
    assert binding(ends["local"], ends["remote"]) == case["out"]


@check("proofs", "nonce")
def check_nonce(case: Case) -> None:
    text = case["in"]
    found = {
        "valid": is_nonce(text),
        "key": is_key(text),
        "meshKey": is_mesh_key(text),
        "commit": commitment(text),
    }
    assert found == case["out"]


@check("proofs", "new_nonce")
def check_new_nonce(case: Case) -> None:
    made = {
        "nonce": new_nonce(lambda n: bytes(range(n))),
        "meshKey": new_mesh_key(lambda n: bytes(range(0x40, 0x40 + n))),
        "key": new_nonce(lambda n: bytes(range(0x20, 0x20 + n))),
        "meshKeyFf": new_mesh_key(lambda n: b"\xff" * n),
    }
    assert made == case["out"]


@check("proofs", "pass")
def check_pass(case: Case) -> None:
    hashed = pass_hash(case["in"])
    assert {"passHash": hashed, "pid": pass_id(hashed)} == case["out"]


@check("proofs", "proof")
def check_proof(case: Case) -> None:
    given = case["in"]
    exchange = Exchange(given["binding"], given["joiner"], given["host"], given["jn"], given["hn"])
    assert exchange.transcript(given["role"], given["cred"]) == case["out"]["transcript"]
    prove = exchange.joiner_proof if given["role"] == "join" else exchange.creator_proof
    assert prove(given["cred"], given["secret"]) == case["out"]["hmac"]


@check("proofs", "sas")
def check_six_digits(case: Case) -> None:
    given = case["in"]
    digits = Exchange(given["binding"], "joiner", "creator", given["jn"], given["hn"]).six_digits()
    assert (digits or None) == case["out"]


@check("proofs", "mesh")
def check_mesh(case: Case) -> None:
    given, recorded = case["in"], case["out"]
    ends = (given["dialer"], given["acceptor"])
    bound_to, role = _seen(given["fps"]), given["role"]
    other = "accept" if role == "dial" else "dial"
    assert mesh_transcript(bound_to, *ends, role) == recorded["transcript"]
    proof = mesh_proof(given["mk"], bound_to, *ends, role)
    assert proof == recorded["p"]
    assert equal(mesh_proof(given["mk"], bound_to, *ends, role), proof) == recorded["checksAsItself"]
    assert equal(mesh_proof(given["mk"], bound_to, *ends, other), proof) == recorded["checksAsOther"]


@check("proofs", "mesh_check")
def check_mesh_check(case: Case) -> None:
    given = case["in"]
    expected = mesh_proof(given["mk"], _seen(given["fps"]), given["dialer"], given["acceptor"], given["role"])
    assert {"proof": expected or None, "ok": equal(expected, given["got"])} == case["out"]


def _source(start: int) -> Callable[[int], bytes]:
    at = start

    def draw(count: int) -> bytes:
        nonlocal at
        at += count
        return bytes((37 * index + 5) % 256 for index in range(at - count, at))

    return draw


class ExchangePlay:
    """One device and one creator going through a recorded exchange."""

    def __init__(self, given: dict[str, Any], recorded: dict[str, Any]) -> None:
        self.given, self.recorded = given, recorded
        held, gate = given["joinerHolds"], given["gate"]
        self.credentials = Credentials(held["key"] or "", held["pass"] or "")
        self.gate = Gate(key=gate["key"], mesh_key=gate["mk"], ask=gate["ask"], legacy=gate["legacy"])
        for pass_text in gate["passes"]:
            self.gate = self.gate.with_pass(pass_text, "otter")
        self.nonce = new_nonce(_source(1))
        self._draw = _source(100)

    def hello(self) -> dict[str, Any]:
        """What the device says; the recorded hello where the case tampers with it or is of an old device."""
        sent = self.recorded["hello"]
        members = {"t": "hello", "name": sent["name"]} | hello_members(self.credentials, self.nonce)
        if not self.given.get("change", "").startswith(("hello", "an old hello")):
            assert {**members, "join": sent.get("join", 1)} == {**sent, "join": sent.get("join", 1)}
        return sent

    def prove(self) -> tuple[dict[str, Any] | None, Exchange | None, Exchange | None]:
        if not wants_proof(self.hello()):
            assert self.recorded["hostWantsAuth"] is False
            return None, None, None
        creator_nonce = new_nonce(self._draw)
        assert {"t": "auth", "v": 1, "hn": creator_nonce} == self.recorded["auth"]
        at_joiner = self._exchange("joinerSees", self.nonce, creator_nonce)
        assert (at_joiner.six_digits() or None) == self.recorded["joinerSas"]
        if not self.given.get("change", "").startswith("proof"):
            assert proof_message(self.credentials, at_joiner) == self.recorded["proof"]
        sent = self.recorded["proof"]
        return sent, at_joiner, self._exchange("hostSees", sent.get("jn", ""), creator_nonce)

    def _exchange(self, view: str, joiner_nonce: str, creator_nonce: str) -> Exchange:
        given = self.given
        return Exchange(_seen(given[view]), given["joiner"], given["host"], joiner_nonce, creator_nonce)

    def decide(self, proof: dict[str, Any] | None, exchange: Exchange | None) -> Decision:
        lobby = [f"waiting-{number}" for number in range(self.given.get("lobbyAlready", 0))]
        denied = [self.given["joiner"]] if self.given.get("denied") else []
        knock = Knock(self.given["joiner"], self.recorded["hello"], proof, exchange)
        return decide(self.gate, knock, lobby, denied, self._draw)


@check("proofs", "exchange")
def check_exchange(case: Case) -> None:
    play = ExchangePlay(case["in"], case["out"])
    assert play.nonce == case["out"]["joinerNonce"]
    proof, at_joiner, at_creator = play.prove()
    decision = play.decide(proof, at_creator)
    assert _described(decision, bool(proof)) == case["out"]["decision"]
    if at_joiner is None or proof is None:
        return
    admit = _admit(case, play, decision)
    if admit is not None:
        verdict = judge_admit(play.credentials, proof, at_joiner, admit).value
        recorded = case["out"].get("joinerVerdict") or case["out"]["afterAllow"]["joinerVerdict"]
        assert verdict == recorded


def _admit(case: Case, play: ExchangePlay, decision: Decision) -> dict[str, Any] | None:
    """The admit the device gets; after Allow it names no credential."""
    if isinstance(decision, Refuse):
        return None
    if isinstance(decision, Ask):
        return admit_message(Admit("open", "A" * 22), play.gate.mesh_key)
    if not case["in"].get("change", "").startswith("admit"):
        assert admit_message(decision, play.gate.mesh_key) == case["out"]["admit"]
    return case["out"]["admit"]


def _described(decision: Decision, proved: bool) -> dict[str, Any]:
    words: dict[str, Any] = {"sas": decision.digits or None} if proved else {}
    if isinstance(decision, Refuse):
        return {"kind": "refuse", "reason": bool(decision.reason)} | (
            {"sas": decision.digits} if decision.digits else {}
        )
    words |= {"failed": True} if decision.failed else {}
    if isinstance(decision, Ask):
        return words | {"kind": "ask"}
    words |= {"kind": "admit", "via": decision.via, "pass": decision.new_pass or None}
    words |= {"hp": decision.creator_proof} if decision.creator_proof else {}
    return words | ({"legacy": True} if decision.legacy else {})
