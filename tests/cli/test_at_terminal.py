"""The program at a real terminal, against a room in this process."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import aiohttp
import pytest

from app.room import intents as it
from tests.cli.toy_room import toy_room
from tests.room.loopback import until, use_loopback

pytest.importorskip("termios", reason="terminals of another kind")

from tests.cli.terminal import ROOT, at_terminal, command, environment, home_in


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)


async def test_a_talk_in_turns_goes_on_after_an_answer_was_stopped(tmp_path: Path) -> None:
    async with toy_room(0.02) as toy:
        arguments = ("chat", toy.link, "--signal", toy.signal, "--max-tokens", "40")
        async with at_terminal(*arguments, home=home_in(tmp_path)) as terminal:
            await terminal.shows("> ")
            terminal.type("Why is the sky blue?\n")
            await terminal.shows("prompt tokens reused")
            assert " · toy · 40 tokens" in terminal.said
            assert "0 of " in terminal.said
            terminal.type("And at night?\n")
            await terminal.shows("> And at night?\n")
            shown = len(terminal.said)
            await until(lambda: len(terminal.said) > shown + 8)
            terminal.type("\x03")
            await terminal.shows("Stopped.")
            await until(lambda: toy.room.state.live is None)
            terminal.type("/bye\n")
            assert await terminal.ends() == 0


async def test_a_talk_ends_with_its_room(tmp_path: Path) -> None:
    async with toy_room() as toy, at_terminal("chat", toy.link, home=home_in(tmp_path, toy.signal)) as terminal:
        await terminal.shows("\n> ")
        toy.room.handle(it.Leave())
        assert await terminal.ends() == 1
        assert "closed" in terminal.said


async def test_a_piped_question_is_one_answer_and_nothing_else(tmp_path: Path) -> None:
    async with toy_room() as toy:
        process = await asyncio.create_subprocess_exec(
            *command("chat", toy.link, "--signal", toy.signal, "--max-tokens", "12"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env=environment(home_in(tmp_path)),
        )
        out, err = await process.communicate(b"Why is\nthe sky blue?\n")
        assert process.returncode == 0, err.decode()
        answer = out.decode()
        assert answer.endswith("\n")
        assert len(answer.strip()) == 12
        assert "\x1b" not in answer
        assert "12 tokens" in err.decode()


async def test_a_room_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    async with toy_room() as toy:
        code = "222222" if toy.room.state.code != "222222" else "333333"
        link = f"pooled://r/{code}#k={'a' * 22}"
        async with at_terminal("chat", link, "hello", "--signal", toy.signal, home=home_in(tmp_path)) as terminal:
            assert await terminal.ends() == 1
            lines = [line for line in terminal.said.splitlines() if line]
            assert "room" in lines[-1].lower()
            assert "Traceback" not in terminal.said


async def test_the_api_says_where_it_is_and_answers(tmp_path: Path) -> None:
    async with toy_room() as toy:
        arguments = ("serve", toy.link, "--signal", toy.signal, "--port", "0")
        async with at_terminal(*arguments, home=home_in(tmp_path), columns=40, NO_COLOR="1") as terminal:
            await terminal.shows("opencode:")
            base = re.search(r"http://127\.0\.0\.1:\d+/v1", terminal.said)
            assert base is not None, terminal.said
            async with aiohttp.ClientSession() as session:
                body = {"model": "toy", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}
                async with session.post(f"{base[0]}/chat/completions", json=body) as answer:
                    said = await answer.json()
            assert "choices" in said, terminal.said
            assert len(said["choices"][0]["message"]["content"]) == 5
            await terminal.shows("answered, 1 in all.")
            assert not re.search(r"\x1b\[[0-9;]*3[0-9]", terminal.raw)
            terminal.type("\x03")
            assert await terminal.ends() == 0


async def test_the_menu_takes_arrows_and_a_link(tmp_path: Path) -> None:
    async with toy_room() as toy, at_terminal(home=home_in(tmp_path, toy.signal)) as terminal:
        await terminal.shows("Manage models")
        terminal.type("\x1b[B\x1b[B\r")
        await terminal.shows("Which room?")
        terminal.type(f"{toy.link}\n")
        await terminal.shows("\n> ")
        terminal.type("\x04")
        assert await terminal.ends() == 0


async def test_a_dumb_terminal_gets_numbers(tmp_path: Path) -> None:
    async with at_terminal(home=home_in(tmp_path), TERM="dumb", columns=40) as terminal:
        await terminal.shows("Which one?")
        terminal.type("5\n")
        assert await terminal.ends() == 0
        assert "qwen3-1.7b" in terminal.said
        assert "\x1b" not in terminal.raw
        assert max(map(len, terminal.said.splitlines())) <= 40, terminal.said


async def test_the_panel_of_a_new_room(tmp_path: Path) -> None:
    arguments = ("host", "--gb", "1", "--no-pull", "--signal", "127.0.0.1:9")
    async with at_terminal(*arguments, home=home_in(tmp_path)) as terminal:
        await terminal.shows("Enter start")
        terminal.type("d")
        await terminal.shows("Nobody is waiting to be let in.")
        terminal.type("s")
        await terminal.shows("Layers are spread over all devices.")
        terminal.type("m")
        await terminal.shows("Which model?")
        terminal.type("\x1b")
        await asyncio.sleep(0.1)
        terminal.type("c")
        await terminal.shows("Whoever has the link")
        terminal.type("/panel\n")
        shown = terminal.said.count("Enter start")
        await terminal.shows("Enter start", times=shown + 1)
        terminal.type("q")
        assert await terminal.ends() == 0


async def test_a_device_that_joins_says_what_it_lends_and_why_and_serves_too(tmp_path: Path) -> None:
    async with toy_room() as toy:
        arguments = ("join", toy.link, "--gb", "1", "--serve=0")
        async with at_terminal(*arguments, home=home_in(tmp_path, toy.signal)) as terminal:
            await terminal.shows("heron lends 1 GB on ")
            assert ": as you asked." in terminal.said
            await terminal.shows("+ heron (you)")
            await until(lambda: any(device.name == "heron" for device in toy.room.state.devices))
            await terminal.shows("answers programs on this computer")
            terminal.type("\x03")
            assert await terminal.ends() == 0
        await until(lambda: all(device.name != "heron" for device in toy.room.state.devices))
