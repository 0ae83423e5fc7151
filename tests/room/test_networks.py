"""IPv6, several network cards, cards without multicast, and candidates that lead nowhere."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import aioice.ice
import pytest
from aioice import mdns

from app.room import multicast
from app.room.gate import Credentials, Gate
from app.room.gathering import MOST_CANDIDATES
from app.room.ice import IceConfig
from app.room.lan_address import Interface, ranked_addresses
from app.room.multicast import multicast_addresses, open_zeroconf
from app.room.rtc import RtcConnection
from tests.room.loopback import Device, room_server, until, use_loopback

CODE = "4TKG9P"
CREATOR = f"pooled-room-{CODE}"
HELLO = {"name": "otter", "meta": {}}
ROOT = Path(__file__).parents[2]


def own_network() -> bool:
    """Whether this computer gives tests a network of their own."""
    tools = shutil.which("unshare") and shutil.which("ip")
    return bool(tools) and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0


needs_own_network = pytest.mark.skipif(not own_network(), reason="needs the right to make network namespaces")


async def _meet() -> list[Any]:
    """Both ends' candidates of a link between two devices here."""
    async with room_server() as server:
        gate = Gate()
        creator, member = Device([server]), Device([server])
        await creator.transport.open_room(CODE, gate, HELLO)
        await member.transport.join(CODE, Credentials(key=gate.key), HELLO)
        me = member.transport.me
        await until(lambda: me in creator.transport.links)
        member.link(CREATOR).send({"t": "over here"})
        await until(lambda: creator.messages[me])
        ends = [member.link(CREATOR)._main.connection, creator.link(me)._main.connection]
        assert [end.path for end in ends] == ["direct", "direct"]
        pairs = [end._ice._nominated[1] for end in ends]
        await member.transport.close()
        await creator.transport.close()
        return pairs


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="needs IPv6")
async def test_a_link_over_ipv6_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda *_args, **_options: ["::1"])
    for pair in await _meet():
        assert (pair.local_candidate.host, pair.remote_candidate.host) == ("::1", "::1")


async def test_a_card_that_cannot_be_bound_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = ["192.0.2.77", "2001:db8::77", "127.0.0.1"]
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda *_args, **_options: addresses)
    for pair in await _meet():
        assert pair.local_candidate.host == "127.0.0.1"


def _with_candidates(sdp: str, hosts: list[str]) -> str:
    lines = [f"a=candidate:{n} 1 udp 2130706431 {host} 9 typ host\r\n" for n, host in enumerate(hosts)]
    return sdp.replace("a=end-of-candidates\r\n", "".join(lines) + "a=end-of-candidates\r\n")


async def _connects_with(hosts: list[str], later: list[str]) -> RtcConnection:
    """A connection whose offer has these candidates too, and which is told of more afterwards."""
    ice = IceConfig(stun=())
    one, other = RtcConnection(ice, "dc_test"), RtcConnection(ice, "dc_test")
    await one.take_answer(await other.take_offer(_with_candidates(await one.make_offer(), hosts)))
    for host in later:
        await other.add_candidate({"candidate": f"candidate:1 1 udp 1 {host} 9 typ host", "sdpMid": "0"})
    await until(lambda: one.is_open and other.is_open)
    one.close("done")
    other.close("done")
    await one.closed()
    await other.closed()
    return other


STRANGE = ["no-such-device.local", "printer", "256.1.1.1", "fe80::1", "0.0.0.0", "255.255.255.255", "224.0.0.251"]


async def test_no_candidate_ends_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    await _connects_with(STRANGE, STRANGE)


async def test_names_are_no_trouble_where_multicast_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused() -> Any:
        raise OSError(98, "Address already in use")

    use_loopback(monkeypatch)
    monkeypatch.setattr(mdns, "create_mdns_protocol", refused)
    await _connects_with(["no-such-device.local"], ["other-device.local"])


async def test_a_flood_of_candidates_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    hosts = [f"10.{n // 250}.{n % 250}.1" for n in range(400)]
    connection = await _connects_with(hosts, hosts)
    assert len(connection.tried.theirs.host) <= MOST_CANDIDATES


def test_addresses_of_several_cards_best_first() -> None:
    cards = [
        Interface("docker0", "172.17.0.1"),
        Interface("wlan0", "192.168.1.20"),
        Interface("eth0", "10.0.0.5"),
        Interface("eth0", "fd00::5"),
        Interface("eth0", "fe80::5"),
    ]
    assert ranked_addresses(cards, "10.0.0.5") == ("10.0.0.5", "192.168.1.20", "fd00::5", "172.17.0.1")
    assert ranked_addresses([], "") == ("127.0.0.1",)


def test_a_card_without_multicast_does_not_silence_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def join(address: str) -> None:
        if address == "10.8.0.2":
            raise OSError(19, "No such device")

    monkeypatch.setattr(multicast, "_join_4", join)
    cards = [
        Interface("tun0", "10.8.0.2"),
        Interface("eth0", "10.0.0.5"),
        Interface("eth0", "10.0.0.6"),
        Interface("lo", "127.0.0.1"),
    ]
    assert multicast_addresses(cards) == ("10.0.0.5",)


def test_without_any_card_it_is_an_error_that_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multicast, "interfaces", list)
    with pytest.raises(OSError, match="no network"):
        open_zeroconf()


CARDS = """
ip link set lo up
ip link add home type veth peer name friend
ip link add mute type veth peer name deaf
ip link set home up; ip link set friend up; ip link set deaf up
ip link set mute multicast off; ip link set mute up
ip addr add 10.91.0.1/24 dev home; ip addr add 10.92.0.1/24 dev mute
ip addr add fd00:91::1/64 dev home nodad
exec "$0" -c "$1"
"""

INSIDE = """
import asyncio, json
from app.room.advert import Announcement
from app.room.lan_address import lan_addresses
from app.room.near import new_alias
from app.room.nearby import Nearby
from tests.room.test_networks import _meet

async def main():
    creator, joiner = Nearby(), Nearby()
    addresses = lan_addresses()
    await creator.announce(Announcement("4TKG9P", "otter", new_alias()), addresses, 47611)
    found = await joiner.find("4TKG9P", 8)
    await joiner.watch()
    for _ in range(160):
        if joiner.rooms(): break
        await asyncio.sleep(0.05)
    names = [room.name for room in joiner.rooms()]
    await joiner.unwatch(); await creator.close()
    hosts = sorted({pair.local_candidate.host for pair in await _meet()})
    print(json.dumps([sorted(addresses), [s.host for s in found], names, hosts]))

asyncio.run(main())
"""


def _inside(script: str, program: str) -> str:
    done = subprocess.run(
        ["unshare", "-n", "bash", "-ec", script, sys.executable, program],
        capture_output=True, text=True, timeout=90, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@needs_own_network
def test_two_cards_one_of_them_without_multicast() -> None:
    addresses, found, names, hosts = json.loads(_inside(CARDS, INSIDE))
    assert addresses == ["10.91.0.1", "10.92.0.1", "fd00:91::1"]
    assert set(found) == set(addresses)
    assert names == ["otter"]
    assert hosts[0].split(":")[0] in ("10.91.0.1", "10.92.0.1", "fd00")


ALONE = 'ip link set lo up; exec "$0" -c "$1"'
NOTHING = """
import asyncio
from app.room.advert import Announcement
from app.room.nearby import Nearby

async def main():
    nearby = Nearby()
    await nearby.announce(Announcement("4TKG9P"), ("10.0.0.1",), 1)
    await nearby.watch()
    print(await nearby.find("4TKG9P", 1), nearby.rooms())
    await nearby.close()

asyncio.run(main())
"""


@needs_own_network
def test_a_computer_without_any_network() -> None:
    assert _inside(ALONE, NOTHING) == "() ()"
