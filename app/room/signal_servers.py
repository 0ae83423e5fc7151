"""Where devices find each other: which PeerJS servers, in which order (spec: rooms §2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

SECURE_PORT = 443
PLAIN_PORT = 80


@dataclass(frozen=True)
class SignalServer:
    """One PeerJS server; ``path`` starts and ends with "/"."""

    host: str
    port: int = SECURE_PORT
    secure: bool = True
    path: str = "/"
    key: str = "peerjs"

    @property
    def label(self) -> str:
        """How it is named in links and messages."""
        if self == CLOUD:
            return "cloud"
        scheme = "https" if self.secure else "http"
        return f"{scheme}://{self._address}{self.path}".rstrip("/")

    @property
    def http_base(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self._address}{self.path}"

    @property
    def socket_base(self) -> str:
        return f"{'wss' if self.secure else 'ws'}://{self._address}{self.path}"

    @property
    def _address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


CLOUD = SignalServer("0.peerjs.com")


def parse_server(spec: str) -> SignalServer | None:
    """Reads "cloud", "host", "host:port", "host:port/path" or a ws, wss, http, https URL; None if it is none.

    Without a scheme, port 443 means TLS and any other port means none.
    """
    spec = spec.strip()
    if spec == "cloud":
        return CLOUD
    try:
        url = urlsplit(spec if "://" in spec else f"//{spec}")
        host, port = url.hostname, url.port
    except ValueError:
        return None
    if not host or url.scheme not in ("", "ws", "wss", "http", "https") or any(c.isspace() for c in spec):
        return None
    secure = url.scheme in ("wss", "https") if url.scheme else port in (None, SECURE_PORT)
    path = "".join(f"/{part}" for part in url.path.split("/") if part) + "/"
    return SignalServer(host, port or (SECURE_PORT if secure else PLAIN_PORT), secure, path)


def server_list(
    linked: str = "",
    configured: Sequence[str] = (),
    own: SignalServer | None = None,
    cloud: bool = True,
) -> list[SignalServer]:
    """The servers to try, each once: those an invite link names, alone; else configured, own, public cloud.

    ``linked`` is the link's comma-separated list; entries that cannot be read are skipped.
    """
    named = _readable(linked.split(","))
    if named:
        return named
    others = [*_readable(configured), *([own] if own else []), *([CLOUD] if cloud else [])]
    return list(dict.fromkeys(others))


def _readable(specs: Sequence[str]) -> list[SignalServer]:
    return list(dict.fromkeys(server for spec in specs if spec.strip() and (server := parse_server(spec))))
