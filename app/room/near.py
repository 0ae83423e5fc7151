"""A room chosen from the list of those nearby: where it is, and the form in which that is handed about.

Nobody types a code for it, so the announcement must lead to the creator without telling the code. It carries a random
alias instead, under which the creator is registered a second time at its own room server. A device that dials the
alias is always put before the person at the creator's end, whatever the room asks of others, and learns the code with
its admission. So a listener learns that there is a room, whose it is called and where it knocks; it learns no code,
and the alias dies with the room. Both people compare six digits, as with a typed code, because anybody on the network
can announce a room under any name.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

from app.room.invite import APP_SCHEME
from app.room.signal_servers import SignalServer, parse_server

HOST = "near"
MOST_SERVERS = 4

_ALIAS = re.compile(r"near-[0-9a-f]{32}")


@dataclass(frozen=True)
class Near:
    """The creator's alias and the addresses of its own room server."""

    alias: str
    servers: tuple[SignalServer, ...]

    def link(self) -> str:
        """What ``JoinRoom`` takes in the place of a code."""
        signal = ",".join(server.label for server in self.servers)
        return f"{APP_SCHEME}://{HOST}/{self.alias}?signal={quote(signal, safe='')}"


@dataclass(frozen=True)
class NearbyRoom:
    """A room that announces itself. ``where`` is what ``JoinRoom`` takes.

    ``reachable`` False: it is heard, but its room server takes no connection from this device.
    """

    name: str
    where: str
    reachable: bool


def new_alias() -> str:
    return f"near-{secrets.token_hex(16)}"


def is_alias(text: str) -> bool:
    return _ALIAS.fullmatch(text) is not None


def near_of(alias: str, servers: Sequence[SignalServer]) -> Near | None:
    """None without a well-formed alias and a server."""
    return Near(alias, tuple(servers[:MOST_SERVERS])) if is_alias(alias) and servers else None


def parse_near(text: str) -> Near | None:
    """Reads what ``Near.link`` wrote; None for a code, an invite link or anything else."""
    try:
        url = urlsplit(text.strip())
    except ValueError:
        return None
    if url.scheme != APP_SCHEME or url.netloc != HOST:
        return None
    specs = parse_qs(url.query).get("signal", [""])[0].split(",")
    servers = [server for spec in specs if (server := parse_server(spec))]
    return near_of(url.path.strip("/"), servers)
