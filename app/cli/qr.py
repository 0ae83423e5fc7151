"""A QR code in text."""

from __future__ import annotations

from io import StringIO

import qrcode
from qrcode.constants import ERROR_CORRECT_L


def qr_text(link: str) -> str:
    """Half blocks, two rows of the code a line, light on dark: for a dark terminal, or set in white on black."""
    code = qrcode.QRCode(error_correction=ERROR_CORRECT_L, border=2)
    code.add_data(link)
    out = StringIO()
    code.print_ascii(out=out, invert=True)
    return out.getvalue().rstrip("\n")
