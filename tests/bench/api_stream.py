"""What a streamed token costs the API itself, over loopback: ``python -m tests.bench.api_stream [--tokens 5000]``.

The room is a script that never waits, so all of the time is the API's, the socket's and the reading client's.
"""

from __future__ import annotations

import argparse
import asyncio
import time

import aiohttp

from tests.serve.golden_cases import CHAT, MESSAGES, RESPONSES
from tests.serve.scripted import ScriptedAnswers, Serving, answer, words

PATHS = {"/v1/chat/completions": CHAT, "/v1/messages": MESSAGES, "/v1/responses": RESPONSES}


async def measure(path: str, tokens: int) -> float:
    """Microseconds a token."""
    body = {**PATHS[path], "stream": True, "max_tokens": tokens, "max_output_tokens": tokens}
    async with (
        Serving(ScriptedAnswers(answer(words(*[" word"] * tokens)))) as serving,
        aiohttp.ClientSession() as session,
    ):
        start = time.perf_counter()
        async with session.post(serving.url + path, json=body) as response:
            async for _ in response.content.iter_any():
                pass
        return (time.perf_counter() - start) / tokens * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=5_000)
    options = parser.parse_args()
    for path in PATHS:
        print(f"  {path:24} {asyncio.run(measure(path, options.tokens)):7.1f} us a token")


if __name__ == "__main__":
    main()
