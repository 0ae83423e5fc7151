"""The one listener others on the network can reach: the application's own room server, and the invite link's page.

It is off until a room is open. Nothing behind it knows the room: keys, chat and weights never pass here.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from aiohttp import web

from app.core.errors import FileError
from app.room.invite import Invite
from app.room.lan_address import LOOPBACK, lan_address, lan_addresses
from app.room.lan_page import add_page
from app.room.signal_server import SignalHub, add_room_server
from app.room.signal_servers import CLOUD, SignalServer

log = logging.getLogger(__name__)

FIRST_PORT = 47600
PORTS = 20
LARGEST_REQUEST = 16 * 1024
BACKLOG = 128


@dataclass(frozen=True)
class _Open:
    runner: web.AppRunner
    port: int


class Lan:
    """``open`` when a room opens, ``close`` when it ends. ``registered`` is the room server the room is on."""

    def __init__(
        self,
        first_port: int = FIRST_PORT,
        address: Callable[[], str] = lan_address,
        addresses: Callable[[], tuple[str, ...]] = lan_addresses,
    ) -> None:
        self.registered: SignalServer | None = None
        self._first_port = first_port
        self._find_address = address
        self._find_addresses = addresses
        self._open: _Open | None = None

    @property
    def port(self) -> int:
        """0 while closed."""
        return self._open.port if self._open else 0

    def address(self) -> str:
        """This computer's best address on the local network."""
        return self._find_address()

    def addresses(self) -> tuple[str, ...]:
        """All of them, the best one first: with several network cards, friends may be behind any."""
        return self._find_addresses()

    async def open(self) -> None:
        """Listens on every interface. Where the system allows no port at all, the room does without."""
        if self._open is not None:
            return
        try:
            application = _application()
            self._open = await _serve(application, _listening(_ports(self._first_port)))
        except (OSError, FileError) as error:
            log.warning("no listener on the local network: %s", error)

    async def close(self) -> None:
        opened, self._open, self.registered = self._open, None, None
        if opened is not None:
            await opened.runner.cleanup()

    def own(self) -> SignalServer | None:
        """The own room server as this device itself reaches it, whatever network it moves to."""
        return SignalServer(LOOPBACK, self.port, secure=False) if self.port else None

    def link_of(self, invite: Invite) -> str:
        """The link for a browser, or the application's own when there is no listener.

        It names the room server whenever that is not the public one, which everybody tries anyway.
        """
        complete = replace(invite, signal=self._signal())
        if not self.port:
            return complete.app_link()
        return replace(complete, origin=f"http://{_authority(self.address(), self.port)}").web_link()

    def _signal(self) -> str:
        if self.registered is None or self.registered == CLOUD:
            return ""
        if self.registered == self.own():
            return _authority(self.address(), self.port)
        return self.registered.label


def _authority(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _ports(first: int) -> Iterable[int]:
    """A few known ones, so that a firewall's rule can name them; then whatever is free."""
    return (*range(first, first + PORTS), 0) if first else (0,)


def _listening(ports: Iterable[int]) -> list[socket.socket]:
    """Sockets for IPv4 and, where there is any, IPv6 on one port. Raises OSError when every port is taken."""
    fault = OSError("there is no port")
    for port in ports:
        try:
            four = _bound(socket.AF_INET, "0.0.0.0", port)
        except OSError as error:
            fault = error
            continue
        return [four, *_six(four.getsockname()[1])]
    raise fault


def _six(port: int) -> list[socket.socket]:
    try:
        return [_bound(socket.AF_INET6, "::", port)]
    except OSError:
        return []


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # Windows would let two programs share the port; elsewhere this only skips the wait after a close.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def _application() -> web.Application:
    application = web.Application(client_max_size=LARGEST_REQUEST)
    add_page(application)
    add_room_server(application, SignalHub())
    return application


async def _serve(application: web.Application, sockets: list[socket.socket]) -> _Open:
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    for each in sockets:
        await web.SockSite(runner, each).start()
    return _Open(runner, sockets[0].getsockname()[1])
