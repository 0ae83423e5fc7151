"""Units and limits that several packages count in."""

from __future__ import annotations

GIB = 2**30
LARGEST_GB = 64.0
"""The most one device lends."""
