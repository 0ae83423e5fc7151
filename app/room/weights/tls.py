"""TLS 1.3 between two devices that know each other's certificates from the link they already have."""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterable

from aiortc import RTCCertificate

from app.core.errors import LinkError
from app.room.certificate import identity_of

PROTOCOL = "pooled-weights/1"
_NO_CHECK_TIME = 0x200000
"""OpenSSL's flag: who is meant is said by the certificate itself, so clocks that differ need not matter."""


def fingerprint_of_der(certificate: bytes) -> str:
    """SHA-256 of a certificate as shown: 64 hex digits."""
    return hashlib.sha256(certificate).hexdigest()


def server_context(own: RTCCertificate, trusted: Iterable[bytes]) -> ssl.SSLContext:
    """Shows ``own`` and lets in who shows one of ``trusted`` (DER), nobody else."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, own, trusted)
    context.num_tickets = 0
    return context


def client_context(own: RTCCertificate, trusted: bytes) -> ssl.SSLContext:
    """Shows ``own`` and talks to who shows ``trusted`` (DER); LinkError when that is no certificate."""
    try:
        return _context(ssl.PROTOCOL_TLS_CLIENT, own, [trusted])
    except (OSError, ValueError) as error:
        raise LinkError("The other device shows no certificate that could be checked.") from error


def _context(side: int, own: RTCCertificate, trusted: Iterable[bytes]) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    context.set_alpn_protocols([PROTOCOL])
    context.load_verify_locations(cadata=b"".join(trusted))
    _show(context, own)
    return context


def _show(context: ssl.SSLContext, own: RTCCertificate) -> None:
    """The ssl module takes a key from a file only; it is there for this moment, in a folder of the owner's alone."""
    with tempfile.TemporaryDirectory(prefix="pooled-") as folder:
        path = os.path.join(folder, "shown.pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(identity_of(own).encode())
        context.load_cert_chain(path)


def is_pinned(connection: ssl.SSLSocket, fingerprints: Iterable[str]) -> bool:
    """Whether the handshake was made with one of these certificates, and for weights."""
    shown = connection.getpeercert(binary_form=True)
    right = shown is not None and fingerprint_of_der(shown) in set(fingerprints)
    return right and connection.selected_alpn_protocol() == PROTOCOL
