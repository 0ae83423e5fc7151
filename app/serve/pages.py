"""What is served beside answers: the models, the health, a banner (spec: product §3.3)."""

from __future__ import annotations

from app.prompt.limits import MOST_TOKENS
from app.room.api.events import Answers, ServedModel
from app.serve.config import root_url
from app.serve.errors import Api, ApiError, Problem
from app.serve.writing import model_id

_LONG_AGO = 1_700_000_000
_LONG_AGO_TEXT = "2023-11-14T22:13:20Z"


def models_page(model: ServedModel | None, api: Api) -> dict[str, object]:
    """A list of the one model; empty until it runs."""
    entries = [] if model is None else [model_entry(model, api)]
    if api is Api.OPENAI:
        return {"object": "list", "data": entries}
    known = model_id(model.key) if model else None
    return {"data": entries, "has_more": False, "first_id": known, "last_id": known}


def model_page(model: ServedModel | None, name: str, api: Api) -> dict[str, object]:
    """Raises ApiError for another name than the model's own."""
    if model is None or name not in (model.key, model_id(model.key)):
        known = f"Ask for '{model_id(model.key)}'." if model else "No model is running."
        raise ApiError(Problem.UNKNOWN, "There is no such model.", known, code="model_not_found", param="model")
    return model_entry(model, api)


def model_entry(model: ServedModel, api: Api) -> dict[str, object]:
    shared: dict[str, object] = {"id": model_id(model.key), "max_model_len": model.context}
    if api is Api.OPENAI:
        return {**shared, "object": "model", "created": _LONG_AGO, "owned_by": "pooled", "name": model.label}
    most = {"max_input_tokens": model.context, "max_tokens": min(model.context, MOST_TOKENS)}
    return {**shared, **most, "type": "model", "display_name": model.label, "created_at": _LONG_AGO_TEXT}


def health_page(answers: Answers, waiting: int, served: int) -> dict[str, object]:
    model = answers.model
    return {
        "ok": True,
        "room": answers.room,
        "connected": bool(answers.room),
        "ready": model is not None,
        "model": model_id(model.key) if model else None,
        "ctx": model.context if model else 0,
        "queue": waiting,
        "served": served,
    }


def banner(model: ServedModel | None, port: int) -> str:
    running = f"{model.label}, context {model.context} tokens" if model else "no model runs yet"
    return (
        f"Pooled: {running}\n\n"
        f"OpenAI base URL     {root_url(port)}/v1   (chat/completions, responses, models)\n"
        f"Anthropic base URL  {root_url(port)}      (v1/messages)\n"
    )
