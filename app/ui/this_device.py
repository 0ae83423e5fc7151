"""What the window knows of the computer it runs on, before any room."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ThisDevice:
    """``ready`` False while the GPU is being looked at; ``problem`` with its ``remedy`` where it cannot be used.

    ``gpu_gb`` is the GPU's memory, 0 when the driver does not say.
    """

    ready: bool = False
    gpu: str = ""
    gpu_gb: float = 0.0
    suggested_gb: float = 4.0
    largest_gb: float = 64.0
    problem: str = ""
    remedy: str = ""
    starter_bytes: int = 0
    starter_ready: bool = False

    @property
    def holds_layers(self) -> bool:
        return self.ready and not self.problem
