"""The listener at which devices of the room fetch weights; closed until one asks."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor

from aiortc import RTCCertificate

from app.core.clock import Clock
from app.core.errors import FileError, LinkError
from app.room.tasks import Tasks
from app.room.weights.bulk import Read, end, serve
from app.room.weights.ends import is_local
from app.room.weights.pacer import Pacer
from app.room.weights.tls import fingerprint_of_der, is_pinned, server_context

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 8
HANDSHAKE = 5.0
SHUT_AFTER = 60.0
"""Seconds without a connection and without a question for one after which the listener goes."""
_BACKLOG = 16


class Door:
    """``admit`` opens it for a device. Who shows another certificate is refused before a byte of weights."""

    def __init__(self, own: RTCCertificate, read: Read, pacer: Pacer, clock: Clock, address: str = "") -> None:
        self._own = own
        self._read = read
        self._pacer = pacer
        self._clock = clock
        self._address = address
        self._tasks = Tasks()
        self._pool = ThreadPoolExecutor(MOST_CONNECTIONS, thread_name_prefix="weights lent")
        self._admitted: dict[str, bytes] = {}
        self._context: ssl.SSLContext | None = None
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._connections: dict[ssl.SSLSocket, str] = {}
        self._used = clock.now()

    @property
    def port(self) -> int:
        """0 while closed."""
        return int(self._listener.getsockname()[1]) if self._listener is not None else 0

    def admit(self, certificate: bytes) -> int:
        """Lets in who shows this certificate (DER), and returns the port; LinkError where none can be had."""
        self._used = self._clock.now()
        admitted = {**self._admitted, fingerprint_of_der(certificate): certificate}
        try:
            self._context = server_context(self._own, admitted.values())
            if self._listener is None:
                self._open()
        except (OSError, ValueError) as error:
            raise LinkError("This device can offer no direct connection.") from error
        self._admitted = admitted
        return self.port

    def _open(self) -> None:
        listener = socket.create_server((self._address, 0), backlog=_BACKLOG)
        listener.setblocking(False)
        self._listener = listener
        self._accepting = self._tasks.start(self._accept(listener), "weights door")
        self._accepting.add_done_callback(lambda _task: listener.close())

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            raw, address = await asyncio.get_running_loop().sock_accept(listener)
            if len(self._connections) >= MOST_CONNECTIONS or not is_local(str(address[0])):
                raw.close()
            else:
                self._begin(raw)

    def _begin(self, raw: socket.socket) -> None:
        """Hands a connection to a thread of the pool for its whole life."""
        assert self._context is not None, "set before the listener"
        raw.settimeout(HANDSHAKE)
        try:
            connection = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        except OSError:
            raw.close()
            return
        self._connections[connection] = ""
        work = asyncio.get_running_loop().run_in_executor(self._pool, self._serve, connection)
        work.add_done_callback(lambda _work: self._ended(connection))

    def _ended(self, connection: ssl.SSLSocket) -> None:
        self._connections.pop(connection, None)
        self._used = self._clock.now()

    def _serve(self, connection: ssl.SSLSocket) -> None:
        with connection:
            try:
                connection.do_handshake()
                if is_pinned(connection, self._admitted):
                    self._connections[connection] = fingerprint_of_der(connection.getpeercert(binary_form=True) or b"")
                    serve(connection, self._read, self._pacer)
            except (OSError, FileError) as error:
                log.info("a direct connection ended: %s", error)

    def revoke(self, fingerprint: str) -> None:
        """The device is not in the room any more."""
        if self._admitted.pop(fingerprint, None) is not None:
            for connection in [c for c, shown in self._connections.items() if shown == fingerprint]:
                end(connection)

    def tick(self) -> None:
        if self._connections:
            self._used = self._clock.now()
        if self._listener is not None and self._clock.now() - self._used >= SHUT_AFTER:
            self._shut()

    def _shut(self) -> None:
        self._listener = None
        if self._accepting is not None:
            self._accepting.cancel()

    async def close(self) -> None:
        """Ends the listener and every connection."""
        self._shut()
        await self._tasks.close()
        for connection in list(self._connections):
            end(connection)
        await asyncio.to_thread(self._pool.shutdown)
