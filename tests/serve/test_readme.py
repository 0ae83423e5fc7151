"""The README shows every tool's settings as the program gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.room.api.events import ServedModel
from app.serve.settings_for_tools import Address, ToolSettings, settings_for_tools

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SHOWN = Address(8080, ServedModel("qwen3.6-35b-moe", "Qwen3.6 35B MoE · Q4", 131_072))


@pytest.mark.parametrize("settings", settings_for_tools(SHOWN), ids=lambda settings: settings.tool)
def test_the_readme_shows_what_the_program_shows(settings: ToolSettings) -> None:
    page = README.partition(f"### {settings.tool}\n")[2].partition("\n### ")[0]
    assert settings.text.rstrip() in page
    assert settings.where in page
