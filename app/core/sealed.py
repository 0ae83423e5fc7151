"""A small file that only this user's key store can open."""

from __future__ import annotations

import logging
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from app.core.files import private_folder, read_start, write_whole
from app.core.secrets import Secrets

log = logging.getLogger(__name__)

KEY = "room key"
LARGEST = 64 << 20


class SealedFile:
    """Content encrypted and signed (Fernet: AES-128-CBC, HMAC-SHA256) with a key of 32 bytes in base64."""

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._fernet = Fernet(key)

    def write(self, content: bytes) -> None:
        """Raises OSError; the old content is then untouched."""
        write_whole(private_folder(self._path.parent) / self._path.name, self._fernet.encrypt(content))

    def read(self) -> bytes | None:
        """None when there is nothing, or nothing that this key opens."""
        try:
            return self._fernet.decrypt(read_start(self._path, LARGEST))
        except InvalidToken:
            log.warning("%s is damaged or was written with another key", self._path.name)
        except OSError as error:
            log.debug("nothing is sealed: %s", error.strerror)
        return None

    def touch(self) -> None:
        """Says that the content still holds."""
        if self._path.exists():
            self._path.touch()

    @property
    def written_at(self) -> float:
        """Unix seconds of the last write or touch; 0 without a file."""
        return self._path.stat().st_mtime if self._path.exists() else 0.0

    def delete(self) -> None:
        self._path.unlink(missing_ok=True)


def sealing_key(secrets: Secrets) -> str:
    """The key kept with the secrets, made on first use."""
    key = secrets.get(KEY)
    if not key:
        key = Fernet.generate_key().decode()
        secrets.put(KEY, key)
    return key
