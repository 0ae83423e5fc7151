"""Connections are bounded in number, and in how long they may say nothing (spec: product A-004)."""

from __future__ import annotations

import asyncio

from tests.serve.scripted import Serving


async def talk(serving: Serving, text: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.server.port)
    writer.write(text)
    await writer.drain()
    return reader, writer


def health(serving: Serving, more: str = "") -> bytes:
    return f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{serving.server.port}\r\n{more}\r\n".encode()


async def test_one_connection_too_many_is_told_so() -> None:
    async with Serving(most_connections=2) as serving:
        held = [await talk(serving, health(serving)) for _ in range(2)]
        for reader, _ in held:
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        reader, writer = await talk(serving, b"")
        told = await reader.read()
        assert told.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 5" in told
        writer.close()
        for _, open_writer in held:
            open_writer.close()
            await open_writer.wait_closed()
        await asyncio.sleep(0.01)
        reader, writer = await talk(serving, health(serving, "Connection: close\r\n"))
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_head_that_never_ends_is_cut_off() -> None:
    async with Serving(headers_s=0.05) as serving:
        for text in (b"", b"GET /health HTTP/1.1\r\nHost: ", health(serving) + b"GET /health HTTP/1.1\r\nX: "):
            reader, writer = await talk(serving, text)
            told = await reader.read()
            assert told.count(b"HTTP/1.1 200") == text.count(b"\r\n\r\n")
            writer.close()


async def test_what_is_no_http_is_turned_away() -> None:
    async with Serving() as serving:
        reader, writer = await talk(serving, b"\x16\x03\x01 hello\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.0 400")
        writer.close()
