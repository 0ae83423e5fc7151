"""The flags that several verbs share, and how their values are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from app.core.ports import HIGHEST_PORT
from app.prompt.limits import MOST_TOKENS

LARGEST_GB = 1024
MOST_DEVICES = 100
MOST_CONTEXT = 1 << 20
LONGEST_TOKEN = 4096
ALL_THERE_IS = -1.0
"""``--gb max``."""


def gigabytes(text: str) -> float:
    """Raises BadParameter for anything but a sensible number or "max"."""
    if text.strip().lower() == "max":
        return ALL_THERE_IS
    try:
        gb = float(text)
    except ValueError:
        gb = -1.0
    if not 0 <= gb <= LARGEST_GB:
        raise typer.BadParameter(f"{text[:40]!r} is not a number of GB, such as 4, and not max")
    return gb


def devices(text: str) -> int:
    """Raises BadParameter for anything but a sensible number."""
    return _whole(text, 1, MOST_DEVICES, "a number of devices, such as 2")


def context(text: str) -> int:
    return _whole(text, 256, MOST_CONTEXT, "a number of tokens, such as 8192")


def tokens(text: str) -> int:
    return _whole(text, 1, MOST_TOKENS, f"a number of tokens from 1 to {MOST_TOKENS}")


def port(text: str) -> int:
    return _whole(text, 0, HIGHEST_PORT, "a port, such as 8080, or 0 for any that is free")


def queue(text: str) -> int:
    return _whole(text, 1, 1000, "a number of waiting requests, such as 8")


def duration(text: str) -> float:
    """Seconds or minutes."""
    return _number(text, 100_000, "a time to wait, such as 60")


def temperature(text: str) -> float:
    return _number(text, 2, "a temperature from 0 to 2")


def _number(text: str, most: float, what: str) -> float:
    """From 0 on."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise typer.BadParameter(f"{text[:40]!r} is not {what}")
    return number


def _whole(text: str, least: int, most: int, what: str) -> int:
    # The parser hands defaults, which are numbers already, through here as well.
    text = str(text)
    if not (text.isascii() and text.isdecimal()) or not least <= int(text[:9]) <= most:
        raise typer.BadParameter(f"{text[:40]!r} is not {what}")
    return int(text)


def token_in(path: Path | None, text: str | None) -> str:
    """The key clients must send: from a file, else the flag, else POOLED_TOKEN. BadParameter for an empty one."""
    if path is not None:
        text = _first_line(path)
    text = os.environ.get("POOLED_TOKEN", "") if text is None else _full(text)
    return text.strip()


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.readline(LONGEST_TOKEN)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"the token file {path} cannot be read") from error


def _full(text: str) -> str:
    if not text.strip():
        raise typer.BadParameter("the token is empty; leave it out to take any key")
    return text


Name = Annotated[str, typer.Option("--name", help="What this device is called.", metavar="NAME")]
Signal = Annotated[list[str] | None, typer.Option("--signal", help="Room server to try first.", metavar="SERVER")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only what matters.")]
JsonLog = Annotated[bool, typer.Option("--json-log", help="One JSON object a line, for other programs.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show what the graphics driver says.")]
Gb = Annotated[
    float | None, typer.Option("--gb", parser=gigabytes, help="Memory to lend; max, or 0 to only ask.", metavar="N|max")
]
Models = Annotated[Path | None, typer.Option("--models", help="Folder of the model files.", metavar="DIR")]
NoPull = Annotated[bool, typer.Option("--no-pull", "--no-fetch", help="Download nothing beforehand.")]
NothingToPull = Annotated[bool, typer.Option("--no-pull", hidden=True)]
"""Taken, and no different: a device that joins fetches only the layers it is dealt."""
Serve = Annotated[bool, typer.Option("--serve", help="Let other programs ask the room here.")]
Port = Annotated[int, typer.Option("--port", parser=port, help="Port of the API; 0 takes a free one.", metavar="PORT")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="File with the key clients send.", metavar="FILE")]
Token = Annotated[
    str | None, typer.Option("--token", help="That key itself; others on this computer can see it.", metavar="KEY")
]
Origin = Annotated[
    list[str] | None,
    typer.Option("--origin", help="Web page that may ask, such as http://localhost:3000.", metavar="URL"),
]
MaxQueue = Annotated[int, typer.Option("--max-queue", parser=queue, help="Requests that may wait.", metavar="N")]
