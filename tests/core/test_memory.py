"""How much a device lends by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.core import memory
from app.core.memory import Graphics, Ram, default_pledge_gb
from app.core.units import GIB

RAM = Ram(total=32, free=24)


@pytest.mark.parametrize(
    ("gpu", "ram", "gb"),
    [
        (None, RAM, 0),
        (Graphics(24, unified=False, free=23.2), RAM, 21.5),
        (Graphics(24, unified=False, free=2.4), RAM, 0),
        (Graphics(24, unified=False, free=200), RAM, 64),
        (Graphics(8, unified=False), RAM, 4),
        (Graphics(8, unified=True), RAM, 20.5),
        (Graphics(8, unified=True), Ram(16, 14), 8),
        (Graphics(8, unified=True), Ram(16, 6), 4),
        (Graphics(8, unified=True), Ram(8, 6), 1),
        (Graphics(8, unified=True), Ram(8, 2.5), 0),
        (Graphics(8, unified=True), Ram(256, 250), 64),
    ],
)
def test_the_memory_rule(gpu: Graphics | None, ram: Ram, gb: float) -> None:
    assert default_pledge_gb(gpu, ram) == gb


def test_the_drivers_tool_names_the_emptiest_card(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_options: Any) -> Any:
        return subprocess.CompletedProcess(command, 0, stdout="2048\n10240\n")

    monkeypatch.setattr(memory.subprocess, "run", run)
    monkeypatch.setattr(memory.platform, "system", lambda: "Linux")
    assert memory.graphics("NVIDIA GeForce", 4 * GIB, software=False) == Graphics(4, unified=False, free=10)


def test_a_missing_tool_leaves_the_largest_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_options: Any) -> Any:
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(memory.subprocess, "run", run)
    monkeypatch.setattr(memory.platform, "system", lambda: "Linux")
    assert memory.graphics("NVIDIA GeForce", 4 * GIB, software=False) == Graphics(4, unified=False)


def test_a_small_carve_out_is_not_a_cards_own_memory(tmp_path: Path) -> None:
    for card, total, used in (("card0", GIB // 2, 0), ("card1", 16 * GIB, 4 * GIB), ("card2", 0, 0)):
        device = tmp_path / card / "device"
        device.mkdir(parents=True)
        (device / "mem_info_vram_total").write_text(str(total))
        (device / "mem_info_vram_used").write_text(str(used))
    (tmp_path / "card2" / "device" / "mem_info_vram_used").unlink()
    amd_free = memory._amd_free  # pyright: ignore[reportPrivateUsage]
    assert amd_free(tmp_path) == 12
    assert amd_free(tmp_path / "card0") is None


def test_a_software_adapter_lends_the_computers_memory() -> None:
    assert memory.graphics("llvmpipe", 2 * GIB, software=True).unified
