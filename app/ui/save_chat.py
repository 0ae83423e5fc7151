"""The conversation as a Markdown file."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.room.codes import format_code
from app.room.state import RoomState


def as_markdown(state: RoomState, when: str) -> str:
    """Answers as they were written, without reasoning; hidden exchanges are left out."""
    head = f"# Room {format_code(state.code)}\n\n{when}" + (f" · {state.label}" if state.label else "")
    parts = [head]
    for item in state.transcript:
        if item.hidden or item.replaced:
            continue
        parts.append(f"**{item.client or item.asker}:** {item.question}")
        parts.append(item.answer)
        if item.stats:
            parts.append(f"<small>{item.stats}</small>")
    return "\n\n".join(parts) + "\n"


def save_chat(window: QWidget, state: RoomState) -> None:
    """Asks where, then writes."""
    name = f"room-{format_code(state.code)}.md"
    chosen, _ = QFileDialog.getSaveFileName(window, "Save the chat", name, "Markdown (*.md)")
    if not chosen:
        return
    try:
        Path(chosen).write_text(as_markdown(state, time.strftime("%Y-%m-%d %H:%M")), encoding="utf-8")
    except OSError as error:
        QMessageBox.warning(
            window, "Not saved", f"The chat could not be saved: {error.strerror}. Choose another place."
        )
