"""The model stores of other programs on this computer, read and never written."""

from app.models.stores.found import Found
from app.models.stores.scan import scan_stores

__all__ = ["Found", "scan_stores"]
