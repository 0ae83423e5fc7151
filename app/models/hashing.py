"""SHA-256 of large files: told how far it is, ended at any moment, and remembered for files that stay the same."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

from app.core.errors import FileError
from app.models.kept import Kept, stamp_of
from app.models.transfer import Meter, Stage, Tell

_STEP = 32 << 20
_KNOWN = Kept("hashes", str)


async def sha256_of(path: Path, tell: Tell) -> str:
    """In hexadecimal. FileError when the file cannot be read to its end."""
    digest, done = hashlib.sha256(), 0
    try:
        with await asyncio.to_thread(path.open, "rb", buffering=0) as stream:
            meter = Meter(tell, 0, os.fstat(stream.fileno()).st_size, Stage.CHECK)
            while data := await asyncio.to_thread(stream.read, _STEP):
                await asyncio.to_thread(digest.update, data)
                done += len(data)
                meter.add(done)
    except OSError as error:
        raise FileError(f"{path.name} cannot be read: {error.strerror}.", "Start the model again.") from error
    return digest.hexdigest()


def known_sha256(path: Path) -> str:
    """The hash as it was when a file of this size and date was read here, "" when none was."""
    stamp = stamp_of(path)
    return _KNOWN.get(stamp.text) or "" if stamp else ""


async def remembered_sha256(path: Path, tell: Tell) -> str:
    """As ``sha256_of``, but each file is read only once."""
    stamp = await asyncio.to_thread(stamp_of, path)
    if stamp is None:
        raise FileError(f"{path.name} is not there any more.", "Start the model again.")
    known = await asyncio.to_thread(_KNOWN.get, stamp.text)
    if known is None:
        known = await sha256_of(path, tell)
        await asyncio.to_thread(_KNOWN.put, stamp.text, known)
    return known
