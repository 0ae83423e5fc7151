"""What goes wrong with a request, and how each API says it (spec: product §3.10)."""

from __future__ import annotations

from enum import Enum

from app.core.errors import PooledError
from app.room.api.events import Ended, Reason, Refusal, Refused

RETRY_S = 5


class Api(Enum):
    """Whose shapes are spoken."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class Problem(Enum):
    """The status and type with OpenAI's APIs, then with Anthropic's."""

    BAD = (400, "invalid_request_error", 400, "invalid_request_error")
    KEY = (401, "authentication_error", 401, "authentication_error")
    FORBIDDEN = (403, "permission_error", 403, "permission_error")
    UNKNOWN = (404, "invalid_request_error", 404, "not_found_error")
    METHOD = (405, "invalid_request_error", 405, "invalid_request_error")
    TOO_LARGE = (413, "invalid_request_error", 413, "request_too_large")
    BUSY = (429, "rate_limit_error", 529, "overloaded_error")
    NOT_READY = (503, "server_error", 529, "overloaded_error")
    SILENT = (504, "server_error", 504, "timeout_error")
    FAILED = (500, "server_error", 500, "api_error")

    def status(self, api: Api) -> int:
        return self.value[0] if api is Api.OPENAI else self.value[2]

    def type(self, api: Api) -> str:
        return self.value[1] if api is Api.OPENAI else self.value[3]


class ApiError(PooledError):
    """``code`` and ``param`` are OpenAI's; ``retry_s`` seconds after which to try again, 0 for never."""

    def __init__(
        self, problem: Problem, what: str, remedy: str = "", *, code: str = "", param: str = "", retry_s: int = 0
    ) -> None:
        super().__init__(what, remedy)
        self.problem = problem
        self.code = code
        self.param = param
        self.retry_s = retry_s

    def body(self, api: Api) -> dict[str, object]:
        """The answer to a request that was refused, and the data of an error in a stream."""
        kind = self.problem.type(api)
        if api is Api.ANTHROPIC:
            return {"type": "error", "error": {"type": kind, "message": str(self)}}
        error = {"message": str(self), "type": kind, "param": self.param or None, "code": self.code or None}
        return {"error": error}


def bad(what: str, remedy: str = "", param: str = "", code: str = "") -> ApiError:
    """A request that says something this API does not take."""
    return ApiError(Problem.BAD, what, remedy, param=param, code=code)


def too_long(tokens: int, most: int) -> ApiError:
    """The words many programs look for before they shorten a conversation."""
    what = f"prompt is too long: {tokens} tokens > {most} maximum context length."
    return bad(
        what, "Shorten the conversation, or start the room with a longer context.", "", "context_length_exceeded"
    )


def inside(error: Exception) -> ApiError:
    """An error nobody foresaw; its details are for the log."""
    return ApiError(Problem.FAILED, f"An error inside: {type(error).__name__}.", "Ask again.", code="internal")


def not_ready() -> ApiError:
    remedy = "Start a model in the room, then ask again."
    return ApiError(Problem.NOT_READY, "No model is running.", remedy, code="not_ready", retry_s=RETRY_S)


def queue_full() -> ApiError:
    remedy = "Ask again in a few seconds."
    return ApiError(Problem.BUSY, "Too many requests wait already.", remedy, code="queue_full", retry_s=RETRY_S)


_REFUSALS = {
    Refusal.BAD: (Problem.BAD, 0),
    Refusal.QUEUE: (Problem.BUSY, RETRY_S),
    Refusal.OFF: (Problem.NOT_READY, 0),
    Refusal.DEGRADED: (Problem.NOT_READY, RETRY_S),
    Refusal.LOADING: (Problem.NOT_READY, RETRY_S),
    Refusal.GONE: (Problem.NOT_READY, RETRY_S),
    Refusal.SILENT: (Problem.SILENT, 0),
    Refusal.FAILED: (Problem.FAILED, 0),
}


def error_of_refusal(refused: Refused) -> ApiError:
    if refused.code is Refusal.CONTEXT:
        return too_long(refused.tokens, refused.most)
    problem, retry_s = _REFUSALS[refused.code]
    return ApiError(problem, refused.why or "The room refused the request.", code=refused.code.value, retry_s=retry_s)


def error_of_end(ended: Ended) -> ApiError | None:
    """A stop pressed in the room is an error: what was said so far is no finished answer."""
    if ended.reason is Reason.ABORTED:
        return ApiError(Problem.NOT_READY, ended.why or "The answer was stopped in the room.", code="stopped")
    if ended.reason is Reason.FAILED:
        return ApiError(Problem.FAILED, ended.why or "The room could not finish the answer.", "Ask again.")
    return None
