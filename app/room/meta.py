"""What a device says about itself (spec: rooms §7.2), read with tolerance because peers write it freely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.room.names import clean_line

GPU_TEXT = 80
OURS = "pooled-desktop"
"""What this application calls itself in ``native``."""
PHONES = frozenset({"iPhone", "Android"})


@dataclass(frozen=True)
class Meta:
    """A device's claims. Sizes in GB are GiB; 0 and "" mean not said."""

    ua: str = ""
    webgpu: bool = False
    webgpu_said: bool = False
    paused: bool = False
    """Ours: it has a GPU, and its owner needs it just now; ``webgpu`` is then False for everybody."""
    gpu: str = ""
    max_buf_gb: float = 0.0
    max_bind_mb: int = 0
    contrib_gb: float = 0.0
    pledge_max: float = 0.0
    phone: bool = False
    gbps: float = 0.0
    native: str = ""
    full: bool = False
    """Ours: can take hidden states as floats of 32 bits."""
    offload: bool = False
    ram_gb: float = 0.0
    dspec: float = 0.0
    wake: bool = False
    api: int = 0
    context: int = 0
    client: str = ""
    fixed_host: bool = False
    model: str = ""

    @property
    def is_phone(self) -> bool:
        return self.phone or self.ua in PHONES

    @property
    def is_api(self) -> bool:
        return self.api > 0


def number(value: object) -> float:
    """A size from a number, a truth value or its text; 0 for anything else, as for one below 0."""
    if isinstance(value, str):
        value = _parsed(value)
    if not isinstance(value, (bool, int, float)):
        return 0.0
    return float(value) if 0 <= value < 2**53 else 0.0


def _parsed(text: str) -> float | None:
    try:
        return float(text[:40])
    except ValueError:
        return None


def _text(value: object, longest: int = 40) -> str:
    return clean_line(value[:longest]).replace("\n", " ") if isinstance(value, str) else ""


def read_meta(value: object) -> Meta:
    """Never fails: members that make no sense count as not said."""
    raw: Mapping[object, object] = value if isinstance(value, Mapping) else {}
    return Meta(
        ua=_text(raw.get("ua")),
        webgpu=bool(raw.get("webgpu")),
        webgpu_said=raw.get("webgpu") is not None,
        paused=bool(raw.get("paused")),
        gpu=_text(raw.get("gpu"), GPU_TEXT),
        max_buf_gb=number(raw.get("maxBufGB")),
        max_bind_mb=int(number(raw.get("maxBindMB"))),
        contrib_gb=number(raw.get("contribGB")),
        pledge_max=number(raw.get("pledgeMax")),
        phone=bool(raw.get("phone")),
        gbps=number(raw.get("gbps")),
        native=_text(raw.get("native")),
        full=bool(raw.get("full")),
        offload=bool(raw.get("offload")),
        ram_gb=number(raw.get("ramGB")),
        dspec=number(raw.get("dspec")),
        wake=bool(raw.get("wake")),
        api=int(number(raw.get("api"))),
        context=int(number(raw.get("ctx"))),
        client=_text(raw.get("client")),
        fixed_host=bool(raw.get("fixedHost")),
        model=_text(raw.get("model"), 80),
    )


def meta_map(meta: Meta) -> dict[str, object]:
    """The wire form; what was not said is left out."""
    said: dict[str, object] = {
        "ua": meta.ua,
        "gpu": meta.gpu,
        "maxBufGB": meta.max_buf_gb,
        "maxBindMB": meta.max_bind_mb,
        "contribGB": meta.contrib_gb,
        "pledgeMax": meta.pledge_max,
        "gbps": meta.gbps,
        "native": meta.native,
        "full": int(meta.full),
        "paused": int(meta.paused),
        "offload": int(meta.offload),
        "ramGB": meta.ram_gb,
        "dspec": meta.dspec,
        "wake": int(meta.wake),
        "api": meta.api,
        "ctx": meta.context,
        "client": meta.client,
        "fixedHost": int(meta.fixed_host),
        "model": meta.model,
    }
    kept = {name: value for name, value in said.items() if value}
    return {**kept, "webgpu": meta.webgpu, "phone": meta.phone}


def lending(meta: Meta, gb: float, *, paused: bool) -> Meta:
    """The same device lending ``gb``, or nothing while it is paused."""
    able = meta.webgpu or meta.paused
    return replace(meta, contrib_gb=gb, webgpu=able and not paused, paused=able and paused)


def without_host_marks(meta: Meta) -> Meta:
    """A member's meta as others keep it: only the creator may fix the model host."""
    return replace(meta, fixed_host=False)


def reduced_api(meta: Meta) -> Meta:
    """All that is kept of an API client's claims."""
    return Meta(ua="API", webgpu_said=True, api=meta.api, client=meta.client)
