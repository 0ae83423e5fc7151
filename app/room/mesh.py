"""The proof on links between devices and on every extra connection of a link (spec: rooms §9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.core.clock import Clock
from app.room.doorstep import PROTOCOL, Doorstep, courtesy, speaks_our_version
from app.room.ports import Message
from app.room.proofs import MeshRole, equal, mesh_proof

PROOF_WAIT_S = 10.0
KEPT_MESSAGES = 256


class MeshHandshake:
    """Proves this end and checks the other. Ends with one call of ``on_proved`` or ``on_failed``.

    ``hello`` is what a main link says first; None on a stripe, which says nothing but its proof. Without
    a mesh key (a room whose creator gives none) everybody is believed.
    """

    def __init__(self, line: Doorstep, me: str, mesh_key: str, hello: Message | None, clock: Clock) -> None:
        self.on_proved: Callable[[Message, Sequence[Message]], None] = lambda _hello, _kept: None
        self.on_failed: Callable[[str], None] = lambda _reason: None
        self._line = line
        self._ends = (me, line.peer_id) if line.dialed else (line.peer_id, me)
        self._mesh_key = mesh_key
        self._hello = hello
        self._clock = clock
        self._since = clock.now()
        self._their_hello: Message | None = {} if hello is None else None
        self._believed = not mesh_key
        self._done = False
        self._kept: list[Message] = []

    def start(self) -> None:
        self._line.on_closed = self._failed
        if self._hello is not None:
            self._line.send({**self._hello, "t": "hello", "v": PROTOCOL, "auth": 1})
        proof = self._proof("dial" if self._line.dialed else "accept")
        self._line.send({"t": "mesh", "v": 1, "p": proof} if proof else {"t": "mesh", "v": 1, "none": 1})
        self._line.listen(self._said)
        self._settle()

    def tick(self) -> None:
        if self._clock.now() - self._since >= PROOF_WAIT_S:
            self._failed("no proof came")

    def _proof(self, role: MeshRole) -> str:
        return mesh_proof(self._mesh_key, self._line.binding, *self._ends, role)

    def _said(self, message: Message) -> None:
        if self._done:
            # What follows the proof in the same breath belongs to whoever takes the line over.
            self._kept.append(message)
            return
        if courtesy(self._line, message):
            return
        kind = message.get("t")
        if kind == "mesh":
            self._check(message)
        elif kind == "hello" and self._their_hello is None:
            self._greeted(message)
        elif len(self._kept) < KEPT_MESSAGES:
            self._kept.append(message)
        else:
            self._failed("it sent too much before its proof")

    def _greeted(self, hello: Message) -> None:
        if not speaks_our_version(hello):
            self._failed("it speaks another version of the protocol")
            return
        self._their_hello = hello
        self._settle()

    def _check(self, message: Message) -> None:
        expected = self._proof("accept" if self._line.dialed else "dial")
        if self._believed or equal(expected, message.get("p")):
            self._believed = True
            self._settle()
        else:
            self._failed("its proof is wrong")

    def _settle(self) -> None:
        if self._believed and self._their_hello is not None and not self._done:
            self._done = True
            self._line.trust()
            self._line.on_closed = lambda _reason: None
            self.on_proved(self._their_hello, self._kept)

    def _failed(self, reason: str) -> None:
        if not self._done:
            self._done = True
            self._line.on_closed = lambda _reason: None
            self._line.close(reason)
            self.on_failed(reason)
