"""Who may enter a room: the creator's rule and the device's answer to it, both pure (spec: rooms §8)."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from app.room.codes import Draw, is_key
from app.room.ports import Message
from app.room.proofs import (
    Credential,
    Exchange,
    commitment,
    equal,
    is_digest,
    is_nonce,
    is_pass_id,
    new_mesh_key,
    new_nonce,
    pass_hash,
    pass_id,
)

LOBBY_LIMIT = 8
MAX_PASSES = 500
MAX_NAME = 40

RELOAD = "This room needs a newer version. Reload the page and join again."
DENIED = "The person who opened this room turned the request down."
LOBBY_FULL = "Too many devices are waiting to join. Try again in a minute."
BROKEN_PROOF = "The join handshake was damaged. Try to join again."
NO_API_CLIENTS = "This room does not let API clients in."


@dataclass(frozen=True)
class Pass:
    """A pass as the creator keeps it: the SHA-256 of its text, and whose it is."""

    digest: str
    name: str


@dataclass(frozen=True)
class Gate:
    """A room's door, saved with the room. ``legacy`` lets old devices show the key itself."""

    key: str = field(default_factory=new_nonce, repr=False)
    mesh_key: str = field(default_factory=new_mesh_key, repr=False)
    passes: tuple[Pass, ...] = field(default=(), repr=False)
    ask: bool = True
    api_clients: bool = True
    legacy: bool = False

    def with_pass(self, pass_text: str, name: str) -> Gate:
        """The gate that also knows ``pass_text``; the oldest of more than 500 passes is forgotten."""
        kept = (*self.passes, Pass(pass_hash(pass_text), name[:MAX_NAME]))
        return replace(self, passes=kept[-MAX_PASSES:])

    def pass_digest(self, wanted_id: str) -> str:
        """The stored hash of the pass with that id, or ""."""
        return next((known.digest for known in self.passes if pass_id(known.digest) == wanted_id), "")


@dataclass(frozen=True)
class Admit:
    """Let in. ``via`` is "key", "pass" or "open"; ``new_pass`` is "" for a device that has one already.

    ``creator_proof`` answers the accepted proof; ``legacy`` says the device showed the key itself.
    """

    via: str
    new_pass: str = field(default="", repr=False)
    creator_proof: str = ""
    digits: str = ""
    failed: bool = False
    legacy: bool = False


@dataclass(frozen=True)
class Ask:
    """Hold the device and ask the person; ``failed`` says that it showed a proof which did not hold."""

    digits: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Refuse:
    reason: str
    digits: str = ""


Decision = Admit | Ask | Refuse


@dataclass(frozen=True)
class Knock:
    """One device at the door: its id, its hello, and its proof with the exchange it belongs to, if any."""

    peer_id: str
    hello: Message
    proof: Message | None = None
    exchange: Exchange | None = None


def wants_proof(hello: Message) -> bool:
    """Whether the device can prove what it holds, so that the creator sends ``auth``."""
    return _number(hello.get("auth")) >= 1 and is_digest(hello.get("jc"))


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, int | float | str) else 0.0
    except ValueError:
        return 0.0


def decide(
    gate: Gate,
    knock: Knock,
    lobby: Collection[str] = (),
    denied: Collection[str] = (),
    draw: Draw = secrets.token_bytes,
) -> Decision:
    """The first rule of rooms §8.2 that applies. ``lobby`` are the ids that wait."""
    if is_api_client(knock.hello) and not gate.api_clients:
        return Refuse(NO_API_CLIENTS)
    shown = _examine(gate, knock)
    if shown is None:
        return Refuse(BROKEN_PROOF)
    if not shown.via and gate.ask:
        return _without_credential(knock, shown, lobby, denied)
    earns_pass = shown.via == "key" or (not shown.via and knock.hello.get("join"))
    new_pass = new_nonce(draw) if earns_pass else ""
    return Admit(shown.via or "open", new_pass, shown.answer, shown.digits, shown.failed, shown.in_clear)


@dataclass(frozen=True)
class _Shown:
    """What a device showed: the credential that held or "", whether one failed, the creator's answer."""

    via: str
    failed: bool = False
    answer: str = ""
    digits: str = ""
    in_clear: bool = False


def _examine(gate: Gate, knock: Knock) -> _Shown | None:
    """None when the device's nonce is not the one it had committed to."""
    if knock.proof is None or knock.exchange is None:
        via = _shown_in_clear(gate, knock.hello)
        return _Shown(via, in_clear=bool(via))
    if not _keeps_commitment(knock.hello, knock.proof):
        return None
    return _proved(gate, knock.hello, knock.proof, knock.exchange)


def _without_credential(knock: Knock, shown: _Shown, lobby: Collection[str], denied: Collection[str]) -> Decision:
    if not knock.hello.get("join"):
        return Refuse(RELOAD, shown.digits)
    if knock.peer_id in denied:
        return Refuse(DENIED, shown.digits)
    if len(lobby) >= LOBBY_LIMIT and knock.peer_id not in lobby:
        return Refuse(LOBBY_FULL, shown.digits)
    return Ask(shown.digits, shown.failed)


def is_api_client(hello: Message) -> bool:
    meta = hello.get("meta")
    return isinstance(meta, Mapping) and bool(meta.get("api"))


def _keeps_commitment(hello: Message, proof: Message) -> bool:
    nonce, promised = proof.get("jn"), hello.get("jc")
    if not (is_nonce(nonce) and is_digest(promised)):
        return False
    return hmac.compare_digest(commitment(nonce), promised)


def _proved(gate: Gate, hello: Message, proof: Message, exchange: Exchange) -> _Shown:
    digits = exchange.six_digits()
    tries = _tries(gate, hello, proof)
    for credential, secret, shown in tries:
        if exchange.binding and secret and equal(exchange.joiner_proof(credential, secret), shown):
            answer = exchange.creator_proof(credential, secret)
            return _Shown(credential, answer=answer, digits=digits)
    return _Shown("", failed=bool(tries), digits=digits)


def _tries(gate: Gate, hello: Message, proof: Message) -> list[tuple[Credential, str, object]]:
    tries: list[tuple[Credential, str, object]] = []
    wanted = hello.get("pid")
    if is_pass_id(wanted) and "pp" in proof:
        tries.append(("pass", gate.pass_digest(wanted), proof["pp"]))
    announced = hello.get("kc")
    if type(announced) is int and announced == 1 and "kp" in proof:
        tries.append(("key", gate.key, proof["kp"]))
    return tries


def _shown_in_clear(gate: Gate, hello: Message) -> str:
    if not gate.legacy:
        return ""
    shown_pass, shown_key = hello.get("pass"), hello.get("key")
    if isinstance(shown_pass, str) and is_key(shown_pass):
        digest = pass_hash(shown_pass)
        if any(hmac.compare_digest(known.digest, digest) for known in gate.passes):
            return "pass"
    if isinstance(shown_key, str) and is_key(shown_key) and hmac.compare_digest(gate.key, shown_key):
        return "key"
    return ""


def admit_message(decision: Admit, mesh_key: str) -> dict[str, object]:
    """The ``admit`` that tells a device of its admission; an empty ``mesh_key`` (API clients) is left out."""
    message: dict[str, object] = {"t": "admit"}
    if decision.new_pass:
        message["pass"] = decision.new_pass
    if decision.creator_proof:
        message |= {"via": decision.via, "hp": decision.creator_proof}
    if mesh_key:
        message["mk"] = mesh_key
    return message


@dataclass(frozen=True)
class Credentials:
    """What a device holds for a room: its link's invite key, the pass of an earlier stay; "" for none.

    ``fingerprint`` is the certificate the creator must show, where the link names it.
    """

    key: str = field(default="", repr=False)
    pass_text: str = field(default="", repr=False)
    fingerprint: str = ""

    def __bool__(self) -> bool:
        return bool(self.key or self.pass_text)

    def secret(self, credential: object) -> str:
        """The text a proof of that credential is keyed with, or ""."""
        if credential == "pass":
            return pass_hash(self.pass_text) if self.pass_text else ""
        return self.key if credential == "key" else ""


def hello_members(credentials: Credentials, nonce: str) -> dict[str, object]:
    """What a joining device adds to its hello: that it wants in, its commitment, and what it can prove."""
    members: dict[str, object] = {"join": 1, "auth": 1, "jc": commitment(nonce)}
    if credentials.key:
        members["kc"] = 1
    if credentials.pass_text:
        members["pid"] = pass_id(pass_hash(credentials.pass_text))
    return members


def proof_message(credentials: Credentials, exchange: Exchange) -> dict[str, object]:
    """The ``auth-proof`` answering the creator's nonce; a device that holds both proves both."""
    message: dict[str, object] = {"t": "auth-proof", "jn": exchange.joiner_nonce}
    if credentials.key:
        message["kp"] = exchange.joiner_proof("key", credentials.key)
    if credentials.pass_text:
        message["pp"] = exchange.joiner_proof("pass", credentials.secret("pass"))
    return message


class Verdict(Enum):
    """What a device makes of being let in: fine, fine but the creator proved nothing, or an impostor."""

    TRUSTED = "ok"
    UNVERIFIED = "tofu"
    IMPOSTOR = "bad"


def judge_admit(credentials: Credentials, proved: Message, exchange: Exchange, admit: Message) -> Verdict:
    """``proved`` is the auth-proof that was sent. The creator must answer with the same credential."""
    tried = {"key": "kp" in proved, "pass": "pp" in proved}
    if not any(tried.values()):
        return Verdict.TRUSTED
    via = admit.get("via")
    if via is None:
        return Verdict.UNVERIFIED
    if via not in ("key", "pass") or not tried[via] or not exchange.binding:
        return Verdict.IMPOSTOR
    expected = exchange.creator_proof(via, credentials.secret(via))
    return Verdict.TRUSTED if equal(expected, admit.get("hp")) else Verdict.IMPOSTOR
