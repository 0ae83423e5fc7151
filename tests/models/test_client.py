"""Who gets the hub's token, whose waits are kept, and through which proxy."""

from __future__ import annotations

import asyncio

import pytest

from app.core.errors import LinkError
from app.models import client as module
from app.models.client import open_client
from app.models.sources import Location, locate
from app.models.table import Source
from tests.models.misbehaving import failing, file_server, ranged, redirecting, whole

CONTENT = b"weights"
TOKEN = "hf_secret"


async def read(location: Location, token: str = TOKEN) -> bytes:
    async with open_client(lambda: token) as client, client.get(location, "m.gguf", {}) as answer:
        return await answer.read()


async def test_the_hub_gets_the_token() -> None:
    async with file_server(whole(CONTENT)) as hub:
        assert await read(Location(hub.url(), hub=True)) == CONTENT
        assert hub.asked[0]["Authorization"] == f"Bearer {TOKEN}"


async def test_nobody_else_does() -> None:
    async with file_server(whole(CONTENT)) as other:
        await read(Location(other.url()))
        assert "Authorization" not in other.asked[0]


async def test_a_redirect_to_another_host_goes_without_the_token() -> None:
    async with (
        file_server(whole(CONTENT)) as store,
        file_server(redirecting(store.url("blob"))) as hub,
    ):
        assert await read(Location(hub.url(), hub=True)) == CONTENT
        assert hub.asked[0]["Authorization"] == f"Bearer {TOKEN}"
        assert "Authorization" not in store.asked[0]


async def test_a_redirect_of_the_hub_to_itself_keeps_it() -> None:
    async with file_server(redirecting("/other"), whole(CONTENT)) as hub:
        assert await read(Location(hub.url(), hub=True)) == CONTENT
        assert [headers["Authorization"] for headers in hub.asked] == [f"Bearer {TOKEN}"] * 2


@pytest.mark.parametrize("token", ["", "two\r\nX-Other: lines", "schlüssel"])
async def test_what_is_no_token_is_not_sent(token: str) -> None:
    async with file_server(whole(CONTENT)) as hub:
        await read(Location(hub.url(), hub=True), token)
        assert "Authorization" not in hub.asked[0]


async def test_a_hub_that_others_can_listen_to_gets_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async with file_server(whole(CONTENT)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base)
        assert await read(Location("http://hub.test/m.gguf", hub=True)) == CONTENT
        assert "Authorization" not in proxy.asked[0]
        assert proxy.asked[0]["Host"] == "hub.test", "the proxy of the environment was asked"


async def test_only_a_hub_source_leads_to_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    location = await locate(Source(hub="some/where", file="m.gguf"))
    assert location.hub
    assert location.url.endswith("/some/where/resolve/main/m.gguf")


async def test_a_wait_that_a_server_asks_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(module.asyncio, "sleep", wait)
    async with file_server(failing(429, {"Retry-After": "12"}), failing(503), ranged(CONTENT)) as server:
        assert await read(Location(server.url())) == CONTENT
    assert [seconds for seconds in waits if seconds] == [12.0]


async def test_going_round_in_circles_has_an_end() -> None:
    async with file_server(redirecting("/again")) as server:
        with pytest.raises(LinkError, match="broke off"):
            await read(Location(server.url()))


async def test_nobody_at_the_address_is_a_typed_error() -> None:
    async with file_server(whole(CONTENT)) as server:
        gone = server.url()
    with pytest.raises(LinkError):
        await read(Location(gone))
