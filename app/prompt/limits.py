"""How much a program may ask for, the same wherever an ask is read (spec: rooms §18, product §3.4, A-031, A-063)."""

from __future__ import annotations

import re

MOST_MESSAGES = 1_000
MOST_CHARS = 1_500_000
MOST_TOKENS = 65_536
"""Of one answer."""
MOST_TOOLS = 1_024
MOST_CALLS = 16
"""In one answer that is written here."""
MOST_CALLS_READ = 64
"""In one answer that somebody else says was given."""
MOST_STOPS = 4
LONGEST_STOP = 64
MOST_BIASES = 1_024
ANSWER_RESERVE = 32
"""Tokens of the context that a prompt leaves to its answer."""
USUAL_TOP_K = 40
USUAL_TEMPERATURE = 0.8
"""Where a program draws words and does not say how warm."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
