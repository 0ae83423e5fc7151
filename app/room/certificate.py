"""The certificate a device's connections show, and its fingerprint in an invite link."""

from __future__ import annotations

from datetime import UTC, datetime

from aiortc import RTCCertificate
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509 import Certificate, load_pem_x509_certificate

from app.core.errors import LinkError
from app.room.proofs import end_fingerprint


def new_certificate() -> RTCCertificate:
    """A fresh key and certificate, good for as long as a room lasts."""
    return RTCCertificate.generateCertificate()


def identity_of(certificate: RTCCertificate) -> str:
    """Key and certificate as PEM text: whoever holds it can show this certificate."""
    key: EllipticCurvePrivateKey = certificate._key  # pyright: ignore[reportPrivateUsage]
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (secret + _shown(certificate).public_bytes(Encoding.PEM)).decode()


def certificate_from(identity: str) -> RTCCertificate:
    """The certificate of an earlier run. Raises LinkError for a text that is none, or one out of date."""
    try:
        key = load_pem_private_key(identity.encode(), None)
        certificate = load_pem_x509_certificate(identity.encode())
    except ValueError as error:
        raise LinkError("The saved certificate is damaged.", "Open a new room.") from error
    if not isinstance(key, EllipticCurvePrivateKey) or certificate.not_valid_after_utc < datetime.now(UTC):
        raise LinkError("The saved certificate is out of date.", "Open a new room.")
    return RTCCertificate(key=key, cert=certificate)


def fingerprint_of(certificate: RTCCertificate) -> str:
    """Its SHA-256 as an invite carries it: 64 hex digits."""
    shown = (f.value for f in certificate.getFingerprints() if f.algorithm == "sha-256")
    return next(shown).replace(":", "").lower()


def der_of(certificate: RTCCertificate) -> bytes:
    """What a peer is shown."""
    return _shown(certificate).public_bytes(Encoding.DER)


def _shown(certificate: RTCCertificate) -> Certificate:
    # aiortc gives neither of its two parts; other connections of this device show the same certificate.
    return certificate._cert  # pyright: ignore[reportPrivateUsage]


def fingerprint_in(sdp: str) -> str:
    """The one SHA-256 a session description shows, as 64 hex digits; "" when there is none."""
    algorithm, _, digits = end_fingerprint(sdp).partition(" ")
    return digits.replace(":", "") if algorithm == "sha-256" else ""
