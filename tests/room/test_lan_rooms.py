"""A room whose devices find each other over the creator's own listener, by link and by code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest

from app.core.errors import LinkError
from app.core.secrets import Place, Secrets
from app.core.settings import RelaySettings, RoomDefaults, Settings
from app.prompt.chat import Style, Wording
from app.room import intents as it
from app.room.advert import Announcement
from app.room.assembly import Paths
from app.room.codes import creator_id
from app.room.gate import Credentials
from app.room.ice import IceConfig, Relay
from app.room.lan import Lan
from app.room.lan_address import LOOPBACK
from app.room.late_transport import LateTransport, ServedTransport, Surroundings
from app.room.link import PeerLink
from app.room.meta import OURS, Meta
from app.room.near import Near, near_of
from app.room.nearby import Nearby
from app.room.outside import RoomPorts
from app.room.planner import SplitMode
from app.room.ports import Link
from app.room.preferences import (
    RELAY_PASSWORD,
    RELAY_SECRET,
    network_of,
    paths_of,
    pledge_of,
    room_defaults,
    room_settings,
)
from app.room.relays import CredentialsUrl, SharedSecret
from app.room.room import Room
from app.room.settings import RoomSettings, Visibility
from app.room.signal_servers import SignalServer, server_list
from app.room.state import Phase
from app.room.transport import NotLetIn, Transport, TransportConfig, TransportState
from app.room.transport import Phase as Door
from tests.room.loopback import outcome, until, use_loopback
from tests.room.toy import TABLE, ToyCompute, greedy, open_language
from tests.room.world import EXACT


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)


class NearbyHere(Nearby):
    """Announcements that reach this process only."""

    said: dict[str, SignalServer]

    def __init__(self, said: dict[str, SignalServer]) -> None:
        super().__init__()
        self.said = said
        self.looked_for: list[str] = []
        self.listed: dict[str, Near | None] = {}

    async def announce(self, room: Announcement, addresses: Sequence[str], port: int) -> None:
        servers = tuple(SignalServer(address, port, secure=False) for address in addresses)
        self.said[room.code], self.listed[room.name] = servers[0], near_of(room.alias, servers)

    async def find(self, code: str, seconds: float = 0) -> tuple[SignalServer, ...]:
        self.looked_for.append(code)
        return (self.said[code],) if code in self.said else ()

    async def close(self) -> None: ...


class Home:
    """One device with its own listener."""

    def __init__(self, said: dict[str, SignalServer]) -> None:
        self.lan = Lan(first_port=0, address=lambda: LOOPBACK, addresses=lambda: (LOOPBACK,))
        self.nearby = NearbyHere(said)
        self.room = Room(
            RoomPorts(
                new_transport=self._transport,
                compute=ToyCompute(),
                table=TABLE,
                open_language=open_language,
                choose=greedy,
                meta=Meta(ua="Device", webgpu=True, dspec=1, max_bind_mb=2048, native=OURS),
                link_of=self.lan.link_of,
            ),
            EXACT,
        )
        self.room.start()

    def _transport(self, linked: str, _identity: str) -> LateTransport:
        def make(near: tuple[SignalServer, ...]) -> ServedTransport:
            servers = (*near, *server_list(linked, (), self.lan.own(), cloud=False))
            return cast(ServedTransport, Transport(TransportConfig(servers, IceConfig(stun=()), stripes=1)))

        return LateTransport(make, Surroundings(self.lan, self.nearby), linked=bool(linked))


@asynccontextmanager
async def homes(count: int) -> AsyncGenerator[list[Home]]:
    said: dict[str, SignalServer] = {}
    made = [Home(said) for _ in range(count)]
    try:
        yield made
    finally:
        for home in reversed(made):
            await home.room.close()


async def opened(home: Home) -> str:
    """The link of a room that ``home`` opens."""
    home.room.handle(it.OpenRoom("otter", 4))
    await until(lambda: home.room.state.invite is not None)
    assert home.room.state.invite
    return home.room.state.invite.link


async def test_a_friend_joins_by_the_link_alone_and_chats() -> None:
    async with homes(2) as (otter, heron):
        link = await opened(otter)
        assert link.startswith(f"http://{LOOPBACK}:{otter.lan.port}/r/")
        heron.room.handle(it.JoinRoom(link, "heron", 1))
        await until(lambda: heron.room.state.can_start)
        heron.room.handle(it.Start())
        await until(lambda: heron.room.state.phase is Phase.ONLINE)
        heron.room.handle(it.Ask("Hello?"))
        await until(lambda: bool(heron.room.state.transcript) and heron.room.state.live is None)
        assert otter.room.state.transcript[-1].answer == heron.room.state.transcript[-1].answer != ""
        assert heron.nearby.looked_for == []
        assert heron.lan.port == 0


async def test_a_friend_joins_by_the_code_and_is_asked_about() -> None:
    async with homes(2) as (otter, heron):
        await opened(otter)
        await until(lambda: bool(otter.nearby.said))
        heron.room.handle(it.JoinRoom(otter.room.state.code.lower(), "heron", 1))
        await until(lambda: heron.room.state.phase is Phase.LOBBY and bool(otter.room.state.waiting))
        request = otter.room.state.waiting[0]
        assert request.digits == heron.room.state.digits
        otter.room.handle(it.Allow(request.id))
        await until(lambda: heron.room.state.phase is Phase.ROOM)
        assert heron.nearby.looked_for == [otter.room.state.code]


async def test_leaving_turns_the_listener_off_and_the_next_room_turns_it_on() -> None:
    async with homes(1) as (otter,):
        await opened(otter)
        first = otter.room.state.code
        otter.room.handle(it.Leave())
        await until(lambda: otter.room.state.phase is Phase.START)
        assert otter.lan.port == 0
        await opened(otter)
        assert otter.lan.port
        assert otter.room.state.code != first


async def test_an_unknown_code_is_an_error_with_a_remedy() -> None:
    async with homes(1) as (heron,):
        heron.room.handle(it.JoinRoom("4TKG9P", "heron", 1))
        await until(lambda: heron.room.state.phase is Phase.ERROR)
        assert heron.room.state.trouble
        assert heron.room.state.remedy


async def test_a_link_to_the_public_room_server_is_not_looked_for_nearby() -> None:
    async with homes(1) as (heron,):
        heron.room.handle(it.JoinRoom("pooled://r/4TKG9P#k=AbCdEfGhIjKlMnOpQrStUv", "heron", 1))
        await until(lambda: heron.room.state.phase is Phase.ERROR)
        assert heron.nearby.looked_for == []


class Friend:
    """A device that joins without a room around it."""

    def __init__(self) -> None:
        self.states: list[TransportState] = []
        self.links: list[Link] = []
        self.lan, self.nearby = Lan(first_port=0), NearbyHere({})

        def make(near: tuple[SignalServer, ...]) -> ServedTransport:
            return cast(ServedTransport, Transport(TransportConfig(near, IceConfig(stun=()), stripes=2)))

        self.transport = LateTransport(make, Surroundings(self.lan, self.nearby), linked=False)
        self.transport.on_state = self.states.append
        self.transport.on_link = lambda link, _hello: self.links.append(link)


async def listed(home: Home) -> Near:
    await until(lambda: "otter" in home.nearby.listed)
    near = home.nearby.listed["otter"]
    assert near is not None
    return near


async def test_a_listed_room_is_entered_without_its_code_when_somebody_allows_it() -> None:
    async with homes(1) as (otter,):
        await opened(otter)
        otter.room.handle(it.ChangeSettings(replace(otter.room.state.settings, ask_first=False)))
        near, friend = await listed(otter), Friend()
        code = otter.room.state.code
        assert code not in near.link()
        joining = asyncio.create_task(friend.transport.join_near(near, {"name": "heron", "meta": {}}))
        await until(lambda: otter.room.state.waiting and friend.states[-1].phase is Door.LOBBY)
        assert code not in repr(friend.states)
        assert not friend.links
        request = otter.room.state.waiting[0]
        assert request.digits == friend.states[-1].digits != ""
        otter.room.handle(it.Allow(request.id))
        joined = await joining
        assert joined.code == code
        assert friend.links[0].peer_id == creator_id(code)
        await until(lambda: len(otter.room.state.devices) == 2)
        friend.links[0].close("gone for a moment")
        await until(lambda: len(otter.room.state.devices) == 1)
        again = await friend.transport.join(code, Credentials(pass_text=joined.pass_text), {"name": "heron"})
        assert again.code == code
        assert len(friend.links) == 2
        await friend.transport.close()


async def test_a_listed_room_may_turn_a_device_away_which_then_knows_no_code() -> None:
    async with homes(1) as (otter,):
        await opened(otter)
        friend = Friend()
        joining = asyncio.create_task(outcome(friend.transport.join_near(await listed(otter), {"name": "heron"})))
        await until(lambda: bool(otter.room.state.waiting))
        otter.room.handle(it.Deny(otter.room.state.waiting[0].id))
        refused = await joining
        assert isinstance(refused, NotLetIn)
        assert otter.room.state.code not in f"{refused} {friend.states}"
        await friend.transport.close()


async def test_who_was_let_in_over_the_list_stays_connected_with_all_its_stripes() -> None:
    async with homes(1) as (otter,):
        await opened(otter)
        friend = Friend()
        joining = asyncio.create_task(friend.transport.join_near(await listed(otter), {"name": "heron"}))
        await until(lambda: bool(otter.room.state.waiting))
        otter.room.handle(it.Allow(otter.room.state.waiting[0].id))
        await joining
        link = cast(PeerLink, friend.links[0])
        await until(lambda: link.stripes == 2)
        await friend.transport.close()


async def test_an_alias_dies_with_its_room() -> None:
    async with homes(1) as (otter,):
        await opened(otter)
        near, friend = await listed(otter), Friend()
        otter.room.handle(it.Leave())
        await until(lambda: otter.room.state.phase is Phase.START)
        assert isinstance(await outcome(friend.transport.join_near(near, {"name": "heron"})), LinkError)
        await friend.transport.close()


def test_settings_become_a_network() -> None:
    secrets = Secrets({RELAY_PASSWORD: "pw"}, Place.FILE)
    relay = RelaySettings("turn:relay.example", "me", only=True)
    network = network_of(Settings(signal=("rooms.example:9000",), cloud=False, relay=relay), secrets)
    secrets.close()
    assert network.paths
    assert network.paths() == Paths(IceConfig(relays=(Relay("turn:relay.example", "me", "pw"),), relay_only=True))
    assert network.own() is None
    assert network.around
    assert (network.signal, network.cloud) == (("rooms.example:9000",), False)


def test_a_relay_set_while_the_program_runs_counts_from_the_next_room_on() -> None:
    secrets, kept = Secrets({RELAY_PASSWORD: "pw"}, Place.FILE), [RelaySettings()]
    network = network_of(Settings(), secrets, relay=lambda: kept[-1])
    assert network.paths
    assert network.paths() == Paths(IceConfig())
    kept.append(RelaySettings("turn:relay.example", "me"))
    assert network.paths().ice.relays == (Relay("turn:relay.example", "me", "pw"),)
    secrets.close()


def test_a_shared_secret_or_an_address_takes_the_place_of_a_fixed_user() -> None:
    secrets = Secrets({RELAY_PASSWORD: "pw", RELAY_SECRET: "north"}, Place.FILE)
    paths = paths_of(RelaySettings("turn:relay.example", "me", shared=True), secrets)
    assert paths == Paths(IceConfig(), SharedSecret("turn:relay.example", b"north", "me"))
    paths = paths_of(RelaySettings(credentials="https://relay.example/turn", only=True), secrets)
    assert paths == Paths(IceConfig(relay_only=True), CredentialsUrl("https://relay.example/turn"))
    secrets.close()


def test_a_rooms_settings_come_back_from_what_was_saved() -> None:
    settings = RoomSettings(
        ask_first=False,
        visibility=Visibility.ASKER,
        style=Style(wording=Wording.EXACT, thinking=True),
        split=SplitMode.MEMORY,
        auto_redeal=False,
    )
    assert room_settings(room_defaults(settings)) == settings
    assert room_settings(RoomDefaults(visibility="nobody", split="?")) == RoomSettings()


async def test_without_a_gpu_nothing_is_lent() -> None:
    assert await pledge_of(Settings(pledge_gb=4), None) == 0
