"""From what a person has set to what a room is made with, for the window and the terminal alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from app.core.memory import default_pledge_gb, graphics, system_ram
from app.core.secrets import Secrets
from app.core.settings import RelaySettings, RoomDefaults, Settings
from app.prompt.chat import Style
from app.room.assembly import Network, Paths
from app.room.compute import GpuSummary
from app.room.ice import IceConfig, Relay
from app.room.lan import Lan
from app.room.late_transport import Surroundings
from app.room.nearby import Nearby
from app.room.relays import CredentialsUrl, Lender, SharedSecret
from app.room.settings import RoomSettings
from app.room.styles import known_word

RELAY_PASSWORD = "relay password"
RELAY_SECRET = "relay secret"


def surroundings() -> Surroundings:
    """The listener and the search on the local network."""
    return Surroundings(Lan(), Nearby())


def network_of(
    settings: Settings,
    secrets: Secrets,
    around: Surroundings | None = None,
    relay: Callable[[], RelaySettings] | None = None,
) -> Network:
    """Room servers in the order configured, own, public; with the listener and the search on the local network.

    ``relay`` tells the relay's settings as they are when a room is entered; else those of ``settings`` stay.
    """
    relay_now = relay or (lambda: settings.relay)
    around = around or surroundings()
    return Network(
        signal=settings.signal,
        paths=lambda: paths_of(relay_now(), secrets),
        cloud=settings.cloud,
        own=around.lan.own,
        link_of=around.lan.link_of,
        around=around,
    )


def paths_of(relay: RelaySettings, secrets: Secrets) -> Paths:
    """Which relays a room is entered with, and who lends more."""
    return Paths(_ice(relay, secrets), _lender(relay, secrets))


def _ice(relay: RelaySettings, secrets: Secrets) -> IceConfig:
    fixed = relay.url and not relay.credentials and not relay.shared
    relays = (Relay(relay.url, relay.user, secrets.get(RELAY_PASSWORD)),) if fixed else ()
    return IceConfig(relays=relays, relay_only=relay.only)


def _lender(relay: RelaySettings, secrets: Secrets) -> Lender | None:
    """An address that gives credentials comes first, then a secret shared with the relay."""
    if relay.credentials:
        return CredentialsUrl(relay.credentials)
    secret = secrets.get(RELAY_SECRET)
    return SharedSecret(relay.url, secret.encode(), relay.user) if relay.shared and relay.url and secret else None


def room_settings(saved: RoomDefaults) -> RoomSettings:
    """A word saved by another version and not known here gives way to the default."""
    usual = RoomSettings()
    style = Style(
        persona=known_word(saved.persona, usual.style.persona),
        wording=known_word(saved.wording, usual.style.wording),
        length=known_word(saved.length, usual.style.length),
        thinking=saved.thinking,
    )
    return RoomSettings(
        ask_first=saved.ask_first,
        visibility=known_word(saved.visibility, usual.visibility),
        style=style,
        split=known_word(saved.split, usual.split),
        auto_redeal=saved.auto_redeal,
        kv="q8" if saved.kv == "q8" else usual.kv,
        precision=known_word(saved.hidden, usual.precision),
        checkpoints=saved.checkpoints,
        checkpoints_on_disk=saved.checkpoints_on_disk,
        api_clients=saved.api_clients,
    )


def room_defaults(settings: RoomSettings) -> RoomDefaults:
    """What to save, so that the next room starts like this one."""
    return RoomDefaults(
        ask_first=settings.ask_first,
        visibility=settings.visibility.value,
        split=settings.split.value,
        auto_redeal=settings.auto_redeal,
        persona=settings.style.persona.value,
        wording=settings.style.wording.value,
        length=settings.style.length.value,
        thinking=settings.style.thinking,
        kv=settings.kv,
        hidden=settings.precision.value,
        checkpoints=settings.checkpoints,
        checkpoints_on_disk=settings.checkpoints_on_disk,
        api_clients=settings.api_clients,
    )


async def pledge_of(settings: Settings, gpu: GpuSummary | None) -> float:
    """GB to lend: as set, else by the memory rule; 0 without a GPU."""
    if gpu is None:
        return 0.0
    if settings.pledge_gb > 0:
        return settings.pledge_gb
    found = await asyncio.to_thread(graphics, gpu.name, gpu.buffer, gpu.software)
    return default_pledge_gb(found, system_ram())
