"""OpenAI's Codex and opencode, the real programs, work in a room: they call tools, run them and read the end.

Their prompts are longer than the context of the models that run here, so the model host's engine is a script
(``tests.e2e.scripted``), which ``generate`` replays. All else is real: queue, mask, parser, the link to another
process, which is ``pooled serve``, and HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.room.api.events import ServedModel
from app.serve.settings_for_tools import Address, codex, opencode
from tests.e2e.scripted import Script
from tests.e2e.scripted_room import ScriptedRoom, scripted_room
from tests.room.loopback import offer_loopback, room_server
from tests.shared import shared_file

PROGRAMS = Path(__file__).parent / "agents" / "node_modules" / ".bin"
MODEL = "models/nano-qwen35moe-Q8_0.gguf"
MADE = "made.txt"
SAID = "The file is made, and the room is glad of it."
WITHIN_S = 120.0


@dataclass(frozen=True)
class Bridge:
    """A room whose API another process serves."""

    room: ScriptedRoom
    address: Address


def program(name: str) -> Path:
    path = PROGRAMS / name
    if not path.exists():
        pytest.skip(f"needs {name}, which the set-up brings by npm")
    return path


@asynccontextmanager
async def bridge(script: Script) -> AsyncIterator[Bridge]:
    offer_loopback()
    model = shared_file(MODEL)
    async with room_server(5.0) as server, scripted_room(model, server, script) as room:
        arguments = ["serve", room.link, "--signal", server.label, "--port", "0", "--json-log", "--name", "bridge"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.cli.program", *arguments, stdout=asyncio.subprocess.PIPE
        )
        try:
            yield Bridge(room, await _address(process))
        finally:
            process.terminate()
            await process.wait()


async def _address(process: asyncio.subprocess.Process) -> Address:
    """Once the bridge listens and knows of the model."""
    assert process.stdout
    told: dict[str, dict[str, object]] = {}
    async with asyncio.timeout(WITHIN_S):
        while "listening" not in told or not told.get("model", {}).get("model"):
            event = json.loads(await process.stdout.readline())
            told[event["event"]] = event
    model = ServedModel(str(told["model"]["model"]), "Scripted", int(str(told["model"]["context"])))
    return Address(int(str(told["listening"]["port"])), model)


async def run(command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Everything the program says; its failure is ours."""
    inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env={**inherited, **environment}, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(WITHIN_S):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = out.decode(errors="replace")
    assert process.returncode == 0, text[-4_000:]
    return text


def call(tool: str, **values: str) -> str:
    """As the nano model's template writes a call."""
    parameters = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values.items())
    return f"<tool_call>\n<function={tool}>\n{parameters}</function>\n</tool_call>"


async def test_codex_runs_a_command_and_reads_its_result(tmp_path: Path) -> None:
    def script(prompt: str) -> str:
        if "glad file" in prompt.rpartition("<tool_response>")[2]:
            return SAID
        return call("exec_command", cmd=f"echo glad file > {MADE} && cat {MADE}")

    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    work = tmp_path / "work"
    work.mkdir()
    async with bridge(script) as made:
        (home / ".codex" / "config.toml").write_text(codex(made.address))
        command = [
            str(program("codex")), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
            "Make the file.",
        ]  # fmt: skip
        said = await run(command, work, {"HOME": str(home), "CODEX_HOME": str(home / ".codex")})
    assert (work / MADE).read_text() == "glad file\n"
    assert SAID in said
    _reused(made)


async def test_opencode_writes_a_file_and_tells_of_it(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def script(prompt: str) -> str:
        if "<tool_response>" in prompt:
            return SAID
        return call("write", content="glad file", filePath=str(work / MADE))

    async with bridge(script) as made:
        (work / "opencode.json").write_text(opencode(made.address))
        command = [str(program("opencode")), "run", "--print-logs", "Make the file."]
        environment = {"HOME": str(tmp_path), "OPENCODE_DISABLE_CLAUDE_CODE": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
        said = await run(command, work, environment)
    assert (work / MADE).read_text().rstrip() == "glad file"
    assert SAID in said
    _reused(made)


def _reused(made: Bridge) -> None:
    """The second turn of the tool read only what was new."""
    first, *_, last = made.room.compute.prompts
    assert len(last) > len(first) > 5_000
    language = made.room.compute.language
    tokens = len(language.tokenizer.encode(first))
    assert made.room.compute.read < 1.5 * tokens
