"""Made-up states of the pages beside a room: the API, the models, a model file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from app.models.places import Origin
from app.models.transfer import Stage, Transfer
from app.room.api.events import ServedModel
from app.room.kinds import Kind
from app.room.state import Device, RoomState
from app.serve.status import ClientCount, Phase, ServeStatus
from app.ui.api_view import ApiView, ApiWish
from app.ui.file_drop import DropHint
from app.ui.gallery import DONE, HOLDING, LONG, ROOM, Scene
from app.ui.models_view import FileLook, ModelLine, ModelsView
from app.ui.window import MainWindow

SERVED = ServedModel("qwen3.6-35b-moe", "Qwen3.6 35B MoE", 32768)
ON = ApiView(ApiWish(on=True), 8080, ServeStatus(Phase.WAITING), SERVED)
CLIENTS = (ClientCount("Codex", 12), ClientCount("OpenAI for Python", 1), ClientCount("opencode"))
CONNECTED = replace(ON, status=ServeStatus(Phase.CONNECTED, "Codex", CLIENTS, 13))
ANSWERING = replace(
    ON,
    wish=ApiWish(on=True, key="room-of-otters"),
    status=ServeStatus(Phase.ANSWERING, "Claude Code", (ClientCount("Claude Code", 3), *CLIENTS), 16, 2),
)
BUSY = ApiView(
    ApiWish(on=True),
    model=SERVED,
    trouble="Port 8080 is used by another program.",
    remedy="Choose another port, or 0 for any that is free.",
)
LONG_CLIENT = "a" * 40
PROGRAM = Device("p1", "opencode", Kind.API, holds_layers=False, path="direct", client="opencode")

MODELS = Path("/home/otter/.local/share/pooled/models")
OWN = Path("/home/otter/Downloads/Llama-3.2-3B-Instruct-Q4_K_M.gguf")
LINES = (
    ModelLine(
        "smollm2-135m-q4_1",
        "SmolLM2 135M",
        98_362_432,
        98_362_432,
        0.6,
        "Apache-2.0",
        Origin.FETCHED,
        MODELS / "smollm2-135m-q4_1" / "smollm2.gguf",
    ),
    ModelLine("qwen3-1.7b", "Qwen3 1.7B · Q8", 1_834_426_016, 0, 5.6, "Apache-2.0"),
    ModelLine("qwen3.6-35b-moe", "Qwen3.6 35B MoE · Q4", 20_836_243_072, 13_600_000_000, 22.5, "", Origin.ROOM),
    ModelLine("qwen3.8-27b", "Qwen3.8 27B · Q4", 16_056_478_688, 0, 17.0),
    ModelLine(
        "gemma-3-4b-1f2e3d4c",
        "Gemma 3 4B Instruct · Q4_K",
        3_338_000_000,
        3_338_000_000,
        4.4,
        "gemma",
        Origin.OLLAMA,
        Path("/home/otter/.ollama/models/blobs/sha256-aa"),
        own=True,
    ),
    ModelLine(
        "llama-3.2-3b-5a6b7c8d",
        "Llama 3.2 3B Instruct · Q4_K",
        2_019_000_000,
        2_019_000_000,
        3.1,
        "llama3.2",
        Origin.OWN,
        OWN,
        own=True,
    ),
)
KNOWN = ModelsView(lines=LINES, free=212_000_000_000)
FETCHING = Transfer(5_240_000_000, 20_836_243_072, 24_000_000, 650)
BUSY_LINES = (
    LINES[0],
    replace(LINES[1], job=Transfer(0, 0, 0, None)),
    replace(LINES[2], job=FETCHING),
    replace(
        LINES[3],
        here=4_200_000_000,
        origin=Origin.FETCHED,
        trouble="The server answered 403: its owner does not give it to you. Accept its terms on its page at the hub "
        "and give your hub token.",
    ),
    replace(LINES[4], label=f"{LONG} of {LONG} · Q4_K"),
    replace(LINES[5], job=Transfer(900_000_000, 2_019_000_000, 480_000_000, 2, Stage.CHECK), here=0, own=False),
)
TEMPLATE = "\n".join(
    (
        "{%- if tools %}",
        "    {{- '<|im_start|>system\\n' }}",
        "    {%- if messages[0].role == 'system' %}",
        "        {{- messages[0].content + '\\n\\n' }}",
        "    {%- endif %}",
        *(f"    {{# line {i} of a long template #}}" for i in range(60)),
    )
)
LOOKED = FileLook(OWN, "Llama 3.2 3B Instruct · Q4_K", 2_019_000_000, 3.1, 131072, 28, "llama3.2", TEMPLATE)
DAMAGED = FileLook(
    OWN,
    trouble="Llama-3.2-3B-Instruct-Q4_K_M.gguf is shorter than its header says.",
    remedy="Get the file again.",
)


def _api(view: ApiView, tool: str = "") -> Callable[[MainWindow], None]:
    def act(window: MainWindow) -> None:
        from app.ui.sheets.api_tools import ApiTools

        window.offer_api(view)
        window.display(window.state)
        window.sheets.open("api")
        for tools in window.findChildren(ApiTools) if tool else []:
            tools.choose(tool)

    return act


def _models(view: ModelsView, sheet: str = "models") -> Callable[[MainWindow], None]:
    def act(window: MainWindow) -> None:
        window.offer_models(view)
        window.display(window.state)
        window.sheets.open(sheet)

    return act


def _file(look: FileLook) -> Callable[[MainWindow], None]:
    return _models(replace(KNOWN, file=look), "model-file")


def page_scenes() -> dict[str, Scene]:
    closed = replace(DONE, settings=replace(DONE.settings, api_clients=False))
    chosen = replace(LOOKED, key=ROOM.rows[1].key)
    return {
        "api-off": Scene(RoomState(), _api(ApiView())),
        "api-off-room": Scene(DONE, _api(ApiView(model=SERVED))),
        "api-no-model": Scene(ROOM, _api(replace(ON, model=None))),
        "api-waiting": Scene(DONE, _api(ON), main=True),
        "api-connected": Scene(DONE, _api(CONNECTED, "Codex"), main=True),
        "api-answering": Scene(DONE, _api(ANSWERING, "Claude Code")),
        "api-port-busy": Scene(DONE, _api(BUSY), main=True),
        "api-closed": Scene(closed, _api(CONNECTED, "opencode")),
        "api-long": Scene(
            DONE, _api(replace(ON, status=ServeStatus(Phase.CONNECTED, LONG_CLIENT, (ClientCount(LONG_CLIENT, 1),))))
        ),
        "device-card-program": Scene(
            replace(DONE, devices=(*HOLDING, PROGRAM)), lambda window: window.sheets.open_device(PROGRAM.id)
        ),
        "models-start": Scene(RoomState(), _models(KNOWN), main=True),
        "models-room": Scene(ROOM, _models(replace(KNOWN, said="Qwen3 4B is deleted; 4.3 GB are free again."))),
        "models-running": Scene(DONE, _models(KNOWN), main=True),
        "models-busy": Scene(ROOM, _models(replace(KNOWN, lines=BUSY_LINES, token_kept=True)), main=True),
        "models-looking": Scene(RoomState(), _models(ModelsView(looking=True))),
        "models-trouble": Scene(
            RoomState(),
            _models(ModelsView(trouble="The model table models.json cannot be read.", remedy="Reinstall Pooled.")),
        ),
        "file-reading": Scene(ROOM, _file(FileLook(OWN))),
        "file-found": Scene(ROOM, _file(LOOKED), main=True),
        "file-bare": Scene(RoomState(), _file(replace(LOOKED, licence="", template="", label=f"{LONG} · Q8_0"))),
        "file-adding": Scene(
            ROOM, _file(replace(LOOKED, adding=Transfer(900_000_000, 2_019_000_000, 0, 2, Stage.CHECK)))
        ),
        "file-added": Scene(ROOM, _file(chosen)),
        "file-damaged": Scene(ROOM, _file(DAMAGED), main=True),
        "file-drop": Scene(ROOM, lambda window: DropHint(window).appear(), main=True),
    }
