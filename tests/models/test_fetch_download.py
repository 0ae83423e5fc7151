"""One download against servers that misbehave."""

from __future__ import annotations

import errno
import random
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.errors import FileError, LinkError
from app.models import client as client_module
from app.models import disk, refusals
from app.models.client import open_client
from app.models.download import Tell, Transfer, download
from app.models.sources import Location
from tests.models.misbehaving import (
    breaking_off,
    endless,
    failing,
    file_server,
    ranged,
    silent,
    stalling,
    tagged,
    whole,
)

CONTENT = random.Random(5).randbytes(300_000)
MOST = len(CONTENT)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def part_of(target: Path) -> Path:
    return target.with_name("model.gguf.part")


def names(target: Path) -> set[str]:
    return {path.name for path in target.parent.iterdir()}


async def fetched(url: str, target: Path, tell: Tell = lambda _transfer: None) -> bytes:
    async with open_client() as client:
        return (await download(client, Location(url), target, tell, MOST)).read_bytes()


async def test_a_download_tells_how_far_it_is(target: Path) -> None:
    told: list[Transfer] = []
    async with file_server(whole(CONTENT)) as server:
        await fetched(server.url(), target, told.append)
    assert names(target) == {"model.gguf"}
    assert (told[-1].done, told[-1].total) == (MOST, MOST)


@given(have=st.integers(0, MOST))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_part_is_continued_at_any_byte(target: Path, have: int) -> None:
    part_of(target).write_bytes(CONTENT[:have])
    async with file_server(ranged(CONTENT)) as server:
        assert await fetched(server.url(), target) == CONTENT
        assert server.ranges == [f"bytes={have}-" if have else ""]


async def test_a_server_that_knows_no_ranges_starts_over(target: Path) -> None:
    part_of(target).write_bytes(CONTENT[:1000])
    async with file_server(whole(CONTENT)) as server:
        assert await fetched(server.url(), target) == CONTENT


async def test_a_part_longer_than_the_file_is_thrown_away(target: Path) -> None:
    part_of(target).write_bytes(CONTENT + b"more")
    async with file_server(ranged(CONTENT)) as server:
        assert await fetched(server.url(), target) == CONTENT
        assert server.ranges == [f"bytes={MOST + 4}-", ""]


async def test_a_refused_range_without_a_length_starts_over_once(target: Path) -> None:
    part_of(target).write_bytes(b"old")
    async with file_server(failing(416)) as server:
        with pytest.raises(LinkError, match="416"):
            await fetched(server.url(), target)
        assert server.ranges == ["bytes=3-", ""]


async def test_a_part_of_another_version_is_not_continued(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second server's file has the same size and another version."""
    monkeypatch.setattr(client_module, "STALLED", 0.2)
    changed = CONTENT[::-1]
    async with file_server(tagged('"one"', stalling(CONTENT, 100_000))) as server:
        with pytest.raises(LinkError):
            await fetched(server.url(), target)
    assert part_of(target).stat().st_size > 0
    async with file_server(tagged('"two"', ranged(changed))) as server:
        assert await fetched(server.url(), target) == changed
        assert server.asked[0]["If-Range"] == '"one"'
    assert names(target) == {"model.gguf"}


async def test_a_part_of_the_same_version_is_continued(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "STALLED", 0.2)
    async with file_server(tagged('"one"', stalling(CONTENT, 100_000)), tagged('"one"', ranged(CONTENT))) as server:
        with pytest.raises(LinkError):
            await fetched(server.url(), target)
        have = part_of(target).stat().st_size
        assert await fetched(server.url(), target) == CONTENT
        assert have > 0
        assert server.ranges[1] == f"bytes={have}-"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429, 500, 502, 503, 504])
async def test_a_refusal_is_named_and_keeps_the_part(target: Path, status: int) -> None:
    part_of(target).write_bytes(CONTENT[:7])
    async with file_server(failing(status)) as server:
        with pytest.raises(LinkError, match=str(status)) as raised:
            await fetched(server.url(), target)
        assert len(server.ranges) == (refusals.ATTEMPTS if status == 429 or status >= 500 else 1)
    assert raised.value.remedy
    assert part_of(target).read_bytes() == CONTENT[:7]


async def test_a_body_that_breaks_off_is_continued_the_next_time(target: Path) -> None:
    async with file_server(breaking_off(CONTENT, 100_000), ranged(CONTENT)) as server:
        with pytest.raises(LinkError):
            await fetched(server.url(), target)
        assert names(target) == {"model.gguf.part"}
        have = part_of(target).stat().st_size
        assert await fetched(server.url(), target) == CONTENT
        assert server.ranges[1] == (f"bytes={have}-" if have else "")


async def test_another_range_than_asked_for_is_refused(target: Path) -> None:
    part_of(target).write_bytes(CONTENT[:10])

    async def wrong(_request: Any) -> Any:
        from aiohttp import web

        return web.Response(status=206, body=b"x", headers={"Content-Range": "bytes 5-5/300000"})

    async with file_server(wrong) as server:
        with pytest.raises(LinkError, match="another part"):
            await fetched(server.url(), target)
    assert part_of(target).read_bytes() == CONTENT[:10]


async def test_a_server_that_says_nothing_is_given_up(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "ANSWER_WITHIN", 0.2)
    async with file_server(silent()) as server:
        with pytest.raises(LinkError, match="no answer"):
            await fetched(server.url(), target)


async def test_a_body_that_stalls_is_given_up(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "STALLED", 0.2)
    async with file_server(stalling(CONTENT, 5000)) as server:
        with pytest.raises(LinkError):
            await fetched(server.url(), target)
    assert part_of(target).read_bytes() == CONTENT[:5000]


async def test_an_endless_body_stops_at_the_size_the_file_has(target: Path) -> None:
    async with file_server(endless()) as server:
        with pytest.raises(LinkError, match="more than"):
            await fetched(server.url(), target)
    assert names(target) == set(), "a longer file is another one"


async def test_a_file_announced_too_large_is_not_begun(target: Path) -> None:
    async with file_server(whole(CONTENT + b"x")) as server:
        with pytest.raises(LinkError, match="more than"):
            await fetched(server.url(), target)
    assert not part_of(target).exists()


async def test_too_little_room_is_said_before_a_byte_is_written(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = disk.shutil.disk_usage(target.parent)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _path: usage._replace(free=MOST - 1))
    async with file_server(whole(CONTENT)) as server:
        with pytest.raises(FileError, match="disk has"):
            await fetched(server.url(), target)
    assert not part_of(target).exists()


async def test_a_disk_that_fills_up_keeps_what_is_there(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0

    class Filling(FileIO):
        """Takes a part of each write, as a full disk may, then nothing more."""

        def write(self, data: Any) -> int:
            nonlocal written
            if written >= 50_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            count = super().write(data[:20_000]) or 0
            written += count
            return count

    monkeypatch.setattr(Path, "open", lambda self, mode="r", **_options: Filling(self, mode.replace("b", "")))
    async with file_server(whole(CONTENT)) as server:
        with pytest.raises(FileError, match="No space left"):
            await fetched(server.url(), target)
    monkeypatch.undo()
    assert part_of(target).read_bytes() == CONTENT[:written]
    async with file_server(ranged(CONTENT)) as server:
        assert await fetched(server.url(), target) == CONTENT


async def test_a_folder_that_cannot_be_written_is_a_file_error(tmp_path: Path) -> None:
    (tmp_path / "model.gguf.part").mkdir()
    async with file_server(whole(CONTENT)) as server:
        with pytest.raises(FileError):
            await fetched(server.url(), tmp_path / "model.gguf")
