"""The creator's second registration: under an alias, at its own room server, for those who have no code."""

from __future__ import annotations

from collections.abc import Callable

from aiortc import RTCCertificate

from app.core.clock import Clock
from app.room.dialer import Dialer
from app.room.ice import IceConfig
from app.room.line import Line
from app.room.signal_servers import SignalServer
from app.room.signaling import Signaling


class NearDoor:
    """``on_line`` gets every connection made to the alias. Comes back by itself when the server was away."""

    def __init__(
        self,
        server: SignalServer,
        ice: Callable[[], IceConfig],
        clock: Clock,
        certificate: RTCCertificate,
    ) -> None:
        self.on_line: Callable[[Line], None] = lambda _line: None
        self._signaling = Signaling([server])
        self._dialer = Dialer(self._signaling, ice, clock, certificate)
        self._dialer.on_line = lambda line: self.on_line(line)

    async def open(self, alias: str) -> None:
        """Raises LinkError when the server is not there."""
        await self._signaling.open(alias)

    async def close(self) -> None:
        """Ends every connection that was made here, those of admitted devices too."""
        await self._dialer.close()
        await self._signaling.close()
