"""The certificate a device's connections show, and its fingerprint in an invite link."""

from __future__ import annotations

from aiortc import RTCCertificate

from app.room.proofs import end_fingerprint


def new_certificate() -> RTCCertificate:
    """A fresh key and certificate, good for as long as a room lasts."""
    return RTCCertificate.generateCertificate()


def fingerprint_of(certificate: RTCCertificate) -> str:
    """Its SHA-256 as an invite carries it: 64 hex digits."""
    shown = (f.value for f in certificate.getFingerprints() if f.algorithm == "sha-256")
    return next(shown).replace(":", "").lower()


def fingerprint_in(sdp: str) -> str:
    """The one SHA-256 a session description shows, as 64 hex digits; "" when there is none."""
    algorithm, _, digits = end_fingerprint(sdp).partition(" ")
    return digits.replace(":", "") if algorithm == "sha-256" else ""
