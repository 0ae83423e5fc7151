"""Draws the gallery into picture files, without a screen: ``python -m app.ui.shots [FOLDER] [NAME...]``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QCoreApplication, QEvent, QSize
from PySide6.QtWidgets import QApplication

from app.ui import highlight, looks, theme
from app.ui.fonts import load_fonts
from app.ui.gallery import Scene, scenes
from app.ui.preferences import Look, Preferences
from app.ui.window import MainWindow

SIZES = {"": QSize(1280, 820), "-900": QSize(900, 820), "-480": QSize(480, 860)}
LARGE_TEXT = "-200pct"


def settle(window: MainWindow) -> None:
    """Until nothing waits to be laid out or drawn."""
    for _ in range(4):
        window.desk.chat.slices.drain()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QApplication.processEvents()


def staged(scene: Scene, size: QSize, preferences: Preferences) -> MainWindow:
    """The scene in a window of that size, as a person would see it."""
    window = MainWindow(scene.device, preferences)
    window.resize(size)
    window.show()
    window.display(scene.state)
    settle(window)
    scene.act(window)
    settle(window)
    return window


def look_of(preferences: Preferences) -> theme.Theme:
    dark = preferences.look is Look.DARK
    return theme.Theme(theme.DARK if dark else theme.LIGHT, preferences.text / 100, motion=False)


def shoot(application: QApplication, folder: Path, names: list[str]) -> int:
    count = 0
    for look in (Look.LIGHT, Look.DARK):
        for text in (100, 200):
            preferences = Preferences("otter", 18, look, text)
            looks.apply(application, look_of(preferences))
            for name, scene in scenes().items():
                if (names and name not in names) or (text == 200 and not scene.main):
                    continue
                count += _shoot_scene(folder, name, scene, preferences)
    return count


def _shoot_scene(folder: Path, name: str, scene: Scene, preferences: Preferences) -> int:
    large = preferences.text > 100
    sizes = {LARGE_TEXT: SIZES[""]} if large else SIZES if scene.main else {"": SIZES[""]}
    for suffix, size in sizes.items():
        window = staged(scene, size, preferences)
        window.grab().save(str(folder / f"{name}-{preferences.look.value}{suffix}.png"))
        window.close()
        window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return len(sizes)


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/shots")
    folder.mkdir(parents=True, exist_ok=True)
    application = QApplication(sys.argv[:1])
    load_fonts()
    highlight.prepare().join()
    count = shoot(application, folder, sys.argv[2:])
    sys.stdout.write(f"{count} pictures in {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
