"""What graphics drivers write past Python to the terminal, kept back (spec: product T-004)."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

STDERR = 2
MOST_KEPT = 8192


@dataclass
class Noise:
    """What was written, once the block has ended."""

    text: bytes = b""

    def show(self) -> None:
        os.write(STDERR, self.text)


@contextmanager
def kept_back() -> Generator[Noise]:
    """Standard error goes nowhere but into the noise for as long as the block lasts."""
    noise = Noise()
    try:
        terminal = os.dup(STDERR)
    except OSError:
        yield noise  # there is no standard error to keep anything from
        return
    with tempfile.TemporaryFile() as kept:
        sys.stderr.flush()
        os.dup2(kept.fileno(), STDERR)
        try:
            yield noise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, STDERR)
            os.close(terminal)
            kept.seek(0)
            noise.text = kept.read(MOST_KEPT)
