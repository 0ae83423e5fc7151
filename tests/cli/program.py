"""The whole program, whose connections also offer 127.0.0.1."""

from __future__ import annotations

from app.__main__ import main
from tests.room.loopback import offer_loopback

if __name__ == "__main__":
    offer_loopback()
    raise SystemExit(main())
