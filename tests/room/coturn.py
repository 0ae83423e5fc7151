"""A real relay on 127.0.0.1, for one test at a time."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PROGRAM = shutil.which("turnserver")
needs_coturn = pytest.mark.skipif(PROGRAM is None, reason="needs coturn (apt-get install coturn)")

REALM = "pooled.test"


@dataclass(frozen=True)
class Coturn:
    """A running relay; ``authority`` is the file of whoever signed its certificate."""

    port: int
    tls_port: int
    authority: Path
    host: str = "127.0.0.1"

    @property
    def udp(self) -> str:
        return f"turn:{self.host}:{self.port}"

    @property
    def tcp(self) -> str:
        return f"turn:{self.host}:{self.port}?transport=tcp"

    @property
    def tls(self) -> str:
        return f"turns:{self.host}:{self.tls_port}"


@asynccontextmanager
async def coturn(folder: Path, *more: str, host: str = "127.0.0.1") -> AsyncIterator[Coturn]:
    """Runs until the end of the block; ``more`` says who may use it."""
    assert PROGRAM is not None
    authority, certificate, key = _certificates(folder, host)
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    relay = Coturn(_free(family, bare), _free(family, bare), authority, host)
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "-n", "--no-cli", f"--listening-ip={bare}", "--relay-ip=127.0.0.1", "--allow-loopback-peers",
        f"--listening-port={relay.port}", f"--tls-listening-port={relay.tls_port}", "--lt-cred-mech",
        f"--realm={REALM}", f"--cert={certificate}", f"--pkey={key}", "--no-dtls", "--log-file=stdout",
        "--simple-log", "--new-log-timestamp", f"--pidfile={folder / 'pid'}", f"--userdb={folder / 'db'}", *more,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    try:
        await _answers(family, bare, relay)
        yield relay
    finally:
        process.kill()
        await process.wait()


async def _answers(family: socket.AddressFamily, host: str, relay: Coturn) -> None:
    async with asyncio.timeout(30):
        for port in (relay.port, relay.tls_port):
            while True:
                with socket.socket(family) as probe:
                    if probe.connect_ex((host, port)) == 0:
                        break
                await asyncio.sleep(0.05)


def _free(family: socket.AddressFamily, host: str) -> int:
    with socket.socket(family) as one, socket.socket(family, socket.SOCK_DGRAM) as other:
        one.bind((host, 0))
        other.bind((host, one.getsockname()[1]))
        return int(one.getsockname()[1])


def _certificates(folder: Path, host: str) -> tuple[Path, Path, Path]:
    """An authority's certificate, and certificate and key it made for the relay."""
    root, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Relay test authority")])
    now = datetime.datetime.now(datetime.UTC)
    usual = (
        x509.CertificateBuilder()
        .issuer_name(name)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    top = (
        usual.subject_name(name)
        .public_key(root.public_key())
        .serial_number(1)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(root, hashes.SHA256())
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host.strip("[]")))])
    leaf = (
        usual.subject_name(x509.Name([]))
        .public_key(key.public_key())
        .serial_number(2)
        .add_extension(address, critical=True)
        .sign(root, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    made = (
        (folder / "authority.pem", top.public_bytes(pem)),
        (folder / "relay.pem", leaf.public_bytes(pem)),
        (folder / "relay.key", key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)),
    )
    for path, content in made:
        path.write_bytes(content)
    return made[0][0], made[1][0], made[2][0]
