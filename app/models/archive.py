"""A model file out of the archive it came in."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from pathlib import Path

from app.core.errors import FileError, LinkError

# All that zipfile raises for a damaged archive, an encrypted one or one packed in a way it does not know.
_DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError)


def extract(archive: Path, member: str, size: int) -> Path:
    """The one member as a file. The archive is deleted: it is used up, or it is not what was meant."""
    target = archive.with_suffix(".member")
    try:
        with zipfile.ZipFile(archive) as opened:
            if opened.getinfo(member).file_size != size:
                raise LinkError(f"{archive.name} holds another version of the model.", "Try again later.")
            with opened.open(member) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
    except _DAMAGED as error:
        target.unlink(missing_ok=True)
        raise LinkError(f"{archive.name} does not hold the model.", "Try again.") from error
    except OSError as error:
        target.unlink(missing_ok=True)
        raise FileError(f"{target.name} cannot be written: {error.strerror}.", "Make room.") from error
    finally:
        archive.unlink(missing_ok=True)
    return target
