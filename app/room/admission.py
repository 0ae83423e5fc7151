"""The creator's door: every device that knocks passes through here (spec: rooms §8.3)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from app.core.clock import Clock
from app.core.errors import ProtocolError
from app.room.binarypack import pack
from app.room.codes import Draw
from app.room.doorstep import WRONG_VERSION, Doorstep, courtesy, speaks_our_version
from app.room.gate import (
    BROKEN_PROOF,
    DENIED,
    Admit,
    Ask,
    Decision,
    Gate,
    Knock,
    Refuse,
    admit_message,
    decide,
    is_api_client,
    wants_proof,
)
from app.room.names import clean_name
from app.room.ports import Message
from app.room.proofs import Exchange, new_nonce

KEPT_MESSAGES = 64
KEPT_BYTES = 64 * 1024
MAX_VISITORS = 64
HANDSHAKE_S = 15.0
OnAdmitted = Callable[[Doorstep, Message, Sequence[Message]], None]

TOO_SLOW = "The join handshake took too long. Try to join again."


@dataclass(frozen=True)
class Waiting:
    """A device that waits for Allow. ``digits`` ("ddd ddd") are the same on its screen, if there are any.

    ``failed`` says that it showed a key or pass that did not hold.
    """

    peer_id: str
    name: str
    meta: Message
    digits: str
    failed: bool = False


@dataclass
class _Visitor:
    line: Doorstep
    since: float
    code: str = ""
    hello: Message | None = None
    nonce: str = ""
    waiting: Waiting | None = None
    done: bool = False
    kept: list[Message] = field(default_factory=list[Message])
    kept_bytes: int = 0

    def keep(self, message: Message) -> None:
        """For later, as long as it is not much; what could not be sent on is not kept."""
        try:
            size = len(pack(message))
        except ProtocolError:
            return
        if len(self.kept) < KEPT_MESSAGES and self.kept_bytes + size <= KEPT_BYTES:
            self.kept.append(message)
            self.kept_bytes += size


class Admission:
    """Holds connections until the gate has decided about them.

    ``on_admitted(line, hello, kept)`` hands a connection over with the messages that came meanwhile;
    ``on_gate`` tells that the gate has issued a pass and is to be saved.
    """

    def __init__(
        self, creator: str, gate: Gate, hello: Message, clock: Clock, draw: Draw = secrets.token_bytes
    ) -> None:
        self.on_waiting: Callable[[Waiting], None] = lambda _waiting: None
        self.on_withdrawn: Callable[[str], None] = lambda _peer_id: None
        self.on_refused: Callable[[str, str], None] = lambda _peer_id, _reason: None
        self.on_gate: Callable[[Gate], None] = lambda _gate: None
        self.on_admitted: OnAdmitted = lambda _line, _hello, _kept: None
        self.gate = gate
        self.hello = hello
        self._creator = creator
        self._clock = clock
        self._draw = draw
        self._visitors: dict[str, _Visitor] = {}
        self._denied: set[str] = set()

    @property
    def lobby(self) -> list[Waiting]:
        """Who waits for Allow, longest first."""
        return [visitor.waiting for visitor in self._visitors.values() if visitor.waiting]

    def arrived(self, line: Doorstep, code: str = "") -> None:
        """A device has opened a connection; a newer one takes the place of the one held.

        ``code``: it came without the room's code, so it is always asked about, and learns the code when let in.
        """
        held = self._visitors.get(line.peer_id)
        if held is not None:
            held.line.close("replaced by a newer connection")
        if len(self._visitors) >= MAX_VISITORS:
            line.close("too many devices at the door")
            return
        visitor = self._visitors[line.peer_id] = _Visitor(line, self._clock.now(), code)
        line.on_closed = lambda _reason: self._gone(visitor)
        line.send({**self.hello, "t": "hello", "gate": 1, "ask": int(self._gate_for(visitor).ask), "auth": 1})
        line.listen(lambda message: self._said(visitor, message))

    def allow(self, peer_id: str) -> None:
        """The person let a waiting device in; it gets a pass for the next time."""
        visitor = self._visitors.get(peer_id)
        if visitor is not None and visitor.waiting is not None:
            self._admit(visitor, Admit("open", new_nonce(self._draw)))

    def deny(self, peer_id: str) -> None:
        """The person turned a waiting device down; it is not asked about again under this id."""
        self._denied.add(peer_id)
        visitor = self._visitors.get(peer_id)
        if visitor is not None and visitor.waiting is not None:
            self._refuse(visitor, DENIED)

    def tick(self) -> None:
        """Turns away devices that opened a connection and went no further."""
        limit = self._clock.now() - HANDSHAKE_S
        for visitor in list(self._visitors.values()):
            if visitor.waiting is None and visitor.since < limit:
                self._refuse(visitor, TOO_SLOW)

    def close(self) -> None:
        for visitor in list(self._visitors.values()):
            visitor.line.close("the room is closed")

    def _said(self, visitor: _Visitor, message: Message) -> None:
        if visitor.done or courtesy(visitor.line, message):
            return
        kind = message.get("t")
        if kind == "hello" and visitor.hello is None:
            self._greeted(visitor, message)
        elif kind == "auth-proof" and visitor.nonce and visitor.waiting is None:
            self._proved(visitor, message)
        else:
            visitor.keep(message)

    def _greeted(self, visitor: _Visitor, hello: Message) -> None:
        visitor.hello = hello
        if not speaks_our_version(hello):
            self._refuse(visitor, WRONG_VERSION)
        elif wants_proof(hello):
            visitor.nonce = new_nonce(self._draw)
            visitor.line.send({"t": "auth", "v": 1, "hn": visitor.nonce})
        else:
            self._decided(visitor, self._decide(visitor, None))

    def _proved(self, visitor: _Visitor, proof: Message) -> None:
        nonce = proof.get("jn")
        line = visitor.line
        exchange = Exchange(
            line.binding, line.peer_id, self._creator, nonce if isinstance(nonce, str) else "", visitor.nonce
        )
        self._decided(visitor, self._decide(visitor, proof, exchange))

    def _decide(self, visitor: _Visitor, proof: Message | None, exchange: Exchange | None = None) -> Decision:
        if visitor.hello is None:
            return Refuse(BROKEN_PROOF)
        knock = Knock(visitor.line.peer_id, visitor.hello, proof, exchange)
        lobby = [waiting.peer_id for waiting in self.lobby]
        return decide(self._gate_for(visitor), knock, lobby, self._denied, self._draw)

    def _gate_for(self, visitor: _Visitor) -> Gate:
        return replace(self.gate, ask=True) if visitor.code else self.gate

    def _decided(self, visitor: _Visitor, decision: Decision) -> None:
        if isinstance(decision, Admit):
            self._admit(visitor, decision)
        elif isinstance(decision, Ask):
            self._hold(visitor, decision)
        else:
            self._refuse(visitor, decision.reason)

    def _hold(self, visitor: _Visitor, decision: Ask) -> None:
        hello = visitor.hello or {}
        peer_id, meta = visitor.line.peer_id, hello.get("meta")
        visitor.waiting = Waiting(
            peer_id,
            clean_name(hello.get("name"), peer_id),
            meta if isinstance(meta, dict) else {},
            decision.digits,
            decision.failed,
        )
        visitor.line.send({"t": "lobby"})
        self.on_waiting(visitor.waiting)

    def _admit(self, visitor: _Visitor, decision: Admit) -> None:
        line, hello = visitor.line, visitor.hello or {}
        self._dismiss(visitor)
        line.trust()
        if decision.new_pass:
            self.gate = self.gate.with_pass(decision.new_pass, clean_name(hello.get("name"), line.peer_id))
            self.on_gate(self.gate)
        admit = admit_message(decision, "" if is_api_client(hello) else self.gate.mesh_key)
        line.send({**admit, "code": visitor.code} if visitor.code else admit)
        self.on_admitted(line, hello, visitor.kept)

    def _refuse(self, visitor: _Visitor, reason: str) -> None:
        self._dismiss(visitor)
        visitor.line.send({"t": "bye", "reason": reason})
        visitor.line.close_soon("refused")
        self.on_refused(visitor.line.peer_id, reason)

    def _gone(self, visitor: _Visitor) -> None:
        if not visitor.done:
            self._dismiss(visitor)

    def _dismiss(self, visitor: _Visitor) -> None:
        """The visitor is no longer held, whatever the reason."""
        visitor.done = True
        visitor.line.on_closed = lambda _reason: None
        if self._visitors.get(visitor.line.peer_id) is visitor:
            del self._visitors[visitor.line.peer_id]
        if visitor.waiting is not None:
            self.on_withdrawn(visitor.line.peer_id)

    def set_rules(self, *, ask: bool, api_clients: bool) -> None:
        """Whether newcomers without a key or pass are asked about, and programs let in; tells ``on_gate``."""
        self.gate = replace(self.gate, ask=ask, api_clients=api_clients)
        self.on_gate(self.gate)
