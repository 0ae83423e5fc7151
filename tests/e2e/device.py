"""A second device as a process of its own: knocks with a code, lends memory, stays until the room ends.

Prints one JSON line a change: its phase, and the six digits while it waits at the door.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from app.room import intents as it
from app.room.assembly import Network, assemble
from app.room.ice import IceConfig
from app.room.state import Phase, RoomState
from tests.e2e.rooms import table_with
from tests.room.loopback import offer_loopback

ENDS = (Phase.OVER, Phase.ERROR)


async def run(signal: str, code: str, name: str, gb: float, stripes: int, model: Path | None) -> int:
    network = Network((signal,), IceConfig(stun=()), stripes, cloud=False)
    application = await assemble(network, table=table_with(model, model.stem) if model else None)
    ended = asyncio.Event()
    said: tuple[str, str] | None = None

    def tell(state: RoomState) -> None:
        nonlocal said
        if said != (state.phase.value, state.digits):
            said = state.phase.value, state.digits
            print(json.dumps({"phase": said[0], "digits": said[1], "trouble": state.trouble}), flush=True)
        if state.phase in ENDS:
            ended.set()

    application.room.subscribe(tell)
    application.room.handle(it.JoinRoom(code, name, gb))
    await ended.wait()
    await application.close()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signal", required=True)
    parser.add_argument("--code", required=True)
    parser.add_argument("--name", default="heron")
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--stripes", type=int, default=1)
    parser.add_argument("--model", type=Path, help="a model file that is not in the table")
    options = parser.parse_args()
    offer_loopback()
    return asyncio.run(run(options.signal, options.code, options.name, options.gb, options.stripes, options.model))


if __name__ == "__main__":
    raise SystemExit(main())
