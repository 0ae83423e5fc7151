"""Proofs of keys bound to one connection, so that no key is ever sent (spec: rooms §8.4, §9)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Literal, TypeGuard

from app.room.codes import Draw, is_key

Credential = Literal["key", "pass"]
MeshRole = Literal["dial", "accept"]

NONCE_BYTES = 16
MESH_KEY_BYTES = 32

_FINGERPRINT_LINE = re.compile(r"a=fingerprint:\s*(\S+)\s+([0-9A-Fa-f:]+)\s*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PASS_ID = re.compile(r"[0-9a-f]{32}")
_MESH_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


def new_nonce(draw: Draw = secrets.token_bytes) -> str:
    """16 random bytes as 22 base64url symbols; also the form of an invite key and of a pass."""
    return _base64url(draw(NONCE_BYTES))


def new_mesh_key(draw: Draw = secrets.token_bytes) -> str:
    """32 random bytes as 43 base64url symbols."""
    return _base64url(draw(MESH_KEY_BYTES))


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def is_nonce(value: object) -> TypeGuard[str]:
    return is_key(value)


def is_digest(value: object) -> TypeGuard[str]:
    """Whether ``value`` is 64 lower-case hex digits."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def is_pass_id(value: object) -> TypeGuard[str]:
    """Whether ``value`` is 32 lower-case hex digits."""
    return isinstance(value, str) and _PASS_ID.fullmatch(value) is not None


def is_mesh_key(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and _MESH_KEY.fullmatch(value) is not None


def fingerprints(sdp: str) -> list[str]:
    """The well-formed certificate fingerprints of a session description, each once: "sha-256 ab:cd:..."."""
    lines = (_FINGERPRINT_LINE.fullmatch(line) for line in _fingerprint_lines(sdp))
    return list(dict.fromkeys(f"{line[1]} {line[2]}".lower() for line in lines if line))


def end_fingerprint(sdp: str) -> str:
    """The one fingerprint an end of a connection shows; "" for none, several or a malformed one."""
    shown = fingerprints(sdp)
    malformed = any(not _FINGERPRINT_LINE.fullmatch(line) for line in _fingerprint_lines(sdp))
    return shown[0] if len(shown) == 1 and not malformed else ""


def _fingerprint_lines(sdp: str) -> list[str]:
    return [line for line in re.split(r"\r?\n", sdp) if line.startswith("a=fingerprint:")]


def binding(local: str, remote: str) -> str:
    """What proofs are bound to: both ends' fingerprints, sorted; "" if one shows none."""
    return ",".join(sorted({local, remote})) if local and remote else ""


def commitment(nonce: str) -> str:
    """What a device says in its hello of the nonce it shows later."""
    return _sha256(f"pooled-commit-v1\n{nonce}")


def pass_hash(pass_text: str) -> str:
    """How the creator keeps a pass, and the secret both ends prove it with."""
    return _sha256(pass_text)


def pass_id(hashed_pass: str) -> str:
    """How a device says which pass it holds without showing it."""
    return _sha256(f"pooled-pass-id-v1\n{hashed_pass}")[:32]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Exchange:
    """What both ends of a gate handshake agree on: the connection's binding, the ids, the nonces."""

    binding: str
    joiner: str
    creator: str
    joiner_nonce: str
    creator_nonce: str

    def transcript(self, role: Literal["join", "host"], credential: Credential) -> str:
        """The text that is authenticated; ``role`` is the end that proves (both words are the wire's)."""
        return "\n".join(
            (
                "pooled-auth-v1",
                f"role={role}",
                f"cred={credential}",
                f"fp={self.binding}",
                f"ids={self.joiner},{self.creator}",
                f"jn={self.joiner_nonce}",
                f"hn={self.creator_nonce}",
            )
        )

    def joiner_proof(self, credential: Credential, secret: str) -> str:
        """``secret`` is the invite key's text, or a pass's hash."""
        return _authenticate(secret, self.transcript("join", credential))

    def creator_proof(self, credential: Credential, secret: str) -> str:
        return _authenticate(secret, self.transcript("host", credential))

    def six_digits(self) -> str:
        """The digits both people compare, "ddd ddd"; "" when the connection cannot be bound to."""
        if not (self.binding and is_nonce(self.joiner_nonce) and is_nonce(self.creator_nonce)):
            return ""
        text = f"pooled-sas-v1\n{self.binding}\n{self.joiner_nonce}\n{self.creator_nonce}"
        digits = f"{int(_sha256(text)[:8], 16) % 1_000_000:06d}"
        return f"{digits[:3]} {digits[3:]}"


def mesh_transcript(bound_to: str, dialer: str, acceptor: str, role: MeshRole) -> str:
    """The text a device authenticates on a link between devices, or on a stripe."""
    return f"pooled-mesh-v1\nrole={role}\nfp={bound_to}\nids={dialer},{acceptor}"


def mesh_proof(mesh_key: str, bound_to: str, dialer: str, acceptor: str, role: MeshRole) -> str:
    """The proof of the end with ``role``; "" for a malformed key or a connection without binding."""
    if not (bound_to and is_mesh_key(mesh_key)):
        return ""
    return _authenticate(mesh_key, mesh_transcript(bound_to, dialer, acceptor, role))


def equal(expected: str, given: object) -> bool:
    """Whether ``given`` is that proof, compared in constant time; an empty expectation is never met."""
    return bool(expected) and is_digest(given) and hmac.compare_digest(expected, given)


def _authenticate(secret: str, transcript: str) -> str:
    return hmac.new(secret.encode(), transcript.encode(), hashlib.sha256).hexdigest()
