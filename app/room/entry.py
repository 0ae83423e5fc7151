"""The joining device's side of the door (spec: rooms §8.3, §26.2)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from app.core.clock import Clock
from app.room.codes import Draw, is_key, parse_code
from app.room.doorstep import PROTOCOL, WRONG_VERSION, Doorstep, courtesy, speaks_our_version
from app.room.gate import Credentials, Verdict, hello_members, judge_admit, proof_message
from app.room.names import clean_line
from app.room.ports import Message
from app.room.proofs import Exchange, is_mesh_key, is_nonce, new_nonce

HELLO_WAIT_S = 2.0
SILENT_CREATOR_S = 15.0
HANDSHAKE_S = 30.0
KEPT_MESSAGES = 256

IMPOSTOR = "Whoever answered under this room's code does not know its key. You were not joined."
NO_ANSWER = "The room does not answer."


@dataclass(frozen=True)
class Entered:
    """Let in. ``pass_text`` opens the door next time, ``mesh_key`` proves other links; "" if not given.

    ``code`` is the room's, told to a device that came without it.
    """

    creator_hello: Message
    verdict: Verdict
    pass_text: str = field(repr=False)
    mesh_key: str = field(repr=False)
    kept: list[Message] = field(repr=False)
    code: str = ""


@dataclass(frozen=True)
class TurnedAway:
    """Not let in. ``room_over``: the room is gone for good; ``impostor``: the creator's proof was wrong."""

    reason: str
    room_over: bool = False
    impostor: bool = False


class Entry:
    """One knock at a room. Ends with one call of ``on_entered`` or ``on_refused``.

    ``on_lobby`` gives the six digits to compare with the creator's screen ("" when there are none).
    """

    def __init__(
        self,
        line: Doorstep,
        me: str,
        credentials: Credentials,
        hello: Message,
        clock: Clock,
        draw: Draw = secrets.token_bytes,
    ) -> None:
        self.on_lobby: Callable[[str], None] = lambda _digits: None
        self.on_entered: Callable[[Entered], None] = lambda _entered: None
        self.on_refused: Callable[[TurnedAway], None] = lambda _turned_away: None
        self._line = line
        self._me = me
        self._credentials = credentials
        self._hello = hello
        self._clock = clock
        self._since = clock.now()
        self._nonce = new_nonce(draw)
        self._creator_hello: Message | None = None
        self._said_hello = False
        self._exchange: Exchange | None = None
        self._proof: Message = {}
        self._in_lobby = False
        self._done = False
        self._kept: list[Message] = []
        self._handlers: dict[str, Callable[[Message], None]] = {
            "hello": self._greeted,
            "auth": self._asked_for_proof,
            "lobby": self._held,
            "admit": self._admitted,
            "bye": self._said_bye,
        }

    def start(self) -> None:
        """Knocks. A device with a key or pass first hears whether this creator takes proofs."""
        self._line.on_closed = lambda reason: self._refused(TurnedAway(f"The connection ended: {reason}."))
        self._line.listen(self._said)
        if not self._credentials and not self._done:
            self._say_hello(self._credentials)

    def tick(self) -> None:
        """Goes on without a creator that says nothing, where that is safe."""
        waited = self._clock.now() - self._since
        if self._done or self._in_lobby:
            return
        if not self._said_hello and waited >= HELLO_WAIT_S:
            self._say_hello(self._credentials)
        if self._creator_hello is None and waited >= SILENT_CREATOR_S and not self._credentials:
            self._enter({})
        elif waited >= HANDSHAKE_S:
            self._refused(TurnedAway(NO_ANSWER))

    def _said(self, message: Message) -> None:
        if self._done:
            # What follows the admission in the same breath belongs to whoever takes the line over.
            self._kept.append(message)
            return
        kind = message.get("t")
        if courtesy(self._line, message):
            return
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(message)
        elif len(self._kept) < KEPT_MESSAGES:
            self._kept.append(message)
        else:
            self._refused(TurnedAway("The room sent too much before letting this device in."))

    def _greeted(self, hello: Message) -> None:
        if self._creator_hello is not None:
            return
        self._creator_hello = hello
        if not speaks_our_version(hello):
            self._line.send({"t": "bye", "reason": WRONG_VERSION})
            self._refused(TurnedAway("The room speaks another version of the protocol."))
            return
        if not self._said_hello:
            self._say_hello(self._credentials if hello.get("auth") else Credentials())
        if not hello.get("gate"):
            self._enter({})

    def _say_hello(self, provable: Credentials) -> None:
        self._said_hello = True
        self._line.send({**self._hello, "t": "hello", "v": PROTOCOL, **hello_members(provable, self._nonce)})

    def _asked_for_proof(self, message: Message) -> None:
        creator_nonce = message.get("hn")
        if not (self._said_hello and self._exchange is None and is_nonce(creator_nonce)):
            return
        line = self._line
        self._exchange = Exchange(line.binding, self._me, line.peer_id, self._nonce, creator_nonce)
        self._proof = proof_message(self._credentials, self._exchange)
        line.send(self._proof)

    def _held(self, _message: Message) -> None:
        self._in_lobby = True
        self.on_lobby(self._exchange.six_digits() if self._exchange is not None else "")

    def _admitted(self, message: Message) -> None:
        if self._said_hello:
            self._enter(message)

    def _said_bye(self, message: Message) -> None:
        reason = message.get("reason")
        text = clean_line(reason[:500]) if isinstance(reason, str) and reason else "The room turned this device away."
        self._refused(TurnedAway(text, room_over=bool(message.get("closed"))))

    def _enter(self, admit: Message) -> None:
        verdict = self._judge(admit)
        if verdict is Verdict.IMPOSTOR:
            self._refused(TurnedAway(IMPOSTOR, impostor=True))
            return
        self._done = True
        self._line.trust()
        self._line.on_closed = lambda _reason: None
        issued, mesh_key, code = admit.get("pass"), admit.get("mk"), admit.get("code")
        self.on_entered(
            Entered(
                self._creator_hello or {},
                verdict,
                issued if isinstance(issued, str) and is_key(issued) else "",
                mesh_key if is_mesh_key(mesh_key) else "",
                self._kept,
                parse_code(code) if isinstance(code, str) else "",
            )
        )

    def _judge(self, admit: Message) -> Verdict:
        if self._exchange is not None:
            return judge_admit(self._credentials, self._proof, self._exchange, admit)
        return Verdict.UNVERIFIED if self._credentials else Verdict.TRUSTED

    def _refused(self, turned_away: TurnedAway) -> None:
        if self._done:
            return
        self._done = True
        self._line.on_closed = lambda _reason: None
        self._line.close_soon("not joined")
        self.on_refused(turned_away)
