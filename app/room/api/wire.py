"""A program's ask and its answer as messages (spec: rooms §18).

Between two of ours an ask travels as one JSON text: the room's packing cannot carry every number of a schema.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from app.core.errors import ProtocolError
from app.engine.sampling import MAX_TOP_K
from app.engine.types import Sampling
from app.prompt.ask import (
    Ask,
    AskMessage,
    AssistantMessage,
    Call,
    Choice,
    Effort,
    Form,
    JsonFormat,
    Thinking,
    Tool,
    ToolMessage,
    UserMessage,
)
from app.prompt.limits import (
    LONGEST_STOP,
    MOST_BIASES,
    MOST_CALLS_READ,
    MOST_CHARS,
    MOST_MESSAGES,
    MOST_STOPS,
    MOST_TOKENS,
    MOST_TOOLS,
    USUAL_TEMPERATURE,
    USUAL_TOP_K,
)
from app.prompt.pieces import CallArguments, CallBegun, CallEnded, Piece, Reasoning, Words
from app.room import messages as m
from app.room.api.events import AskEvent, Ended, Queued, Reason, Refusal, Refused, Spoken, Started, Usage
from app.room.binarypack import LOWEST_INTEGER

API_LEVEL = 2
COUNTED = "count"
"""Why an answer is over that was never written: only its prompt was counted."""

ShortText = Annotated[str, msgspec.Meta(max_length=200)]
Text = Annotated[str, msgspec.Meta(max_length=MOST_CHARS)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
Bias = Annotated[float, msgspec.Meta(ge=-100, le=100)]
TokenId = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,7}$")]
Stop = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_STOP)]


class CallItem(msgspec.Struct, frozen=True, omit_defaults=True):
    name: ShortText
    args: dict[str, Any] = {}


class TurnItem(msgspec.Struct, frozen=True, omit_defaults=True):
    role: str = "user"
    text: Text = ""
    aside: bool = False
    calls: Annotated[tuple[CallItem, ...], msgspec.Meta(max_length=MOST_CALLS_READ)] = ()
    reasoning: Text = ""


class ToolItem(msgspec.Struct, frozen=True, omit_defaults=True):
    name: ShortText
    description: Annotated[str, msgspec.Meta(max_length=64_000)] = ""
    schema: dict[str, Any] = {}


class FormatItem(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str = "json"
    schema: dict[str, Any] | None = None
    name: ShortText = ""


class NamedTool(msgspec.Struct, frozen=True):
    name: ShortText


class ParamsItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """``topP``, ``minP``, ``seed`` and ``bias`` are ours."""

    maxTokens: Tokens = 1_024
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    topK: Annotated[int, msgspec.Meta(ge=1)] | None = None
    topP: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    minP: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    seed: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    bias: Annotated[dict[TokenId, Bias], msgspec.Meta(max_length=MOST_BIASES)] = {}
    stop: Annotated[tuple[Stop, ...], msgspec.Meta(max_length=MOST_STOPS)] = ()
    thinking: bool = False
    thinkBudget: Tokens | None = None
    effort: str = ""
    toolChoice: NamedTool | str = "auto"
    allowed: Annotated[tuple[ShortText, ...], msgspec.Meta(max_length=MOST_TOOLS)] | None = None
    parallel: bool = True
    maxCalls: Annotated[int, msgspec.Meta(ge=1, le=128)] = 128
    format: FormatItem | None = None
    client: Annotated[str, msgspec.Meta(max_length=200)] = ""


class AskBody(msgspec.Struct, frozen=True, omit_defaults=True):
    messages: Annotated[tuple[TurnItem, ...], msgspec.Meta(max_length=MOST_MESSAGES)]
    system: Text = ""
    tools: Annotated[tuple[ToolItem, ...], msgspec.Meta(max_length=MOST_TOOLS)] = ()
    params: ParamsItem = ParamsItem()


# -- asks ---------------------------------------------------------------------------------------------------------


def read_ask(message: m.Ask) -> Ask:
    """Raises ProtocolError for an ask that makes no sense."""
    try:
        body = _body(message)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ProtocolError(f"The request cannot be read: {error}", "Check what the program sends.") from error
    if not body.messages or body.messages[-1].role not in ("user", "tool"):
        raise ProtocolError("The last message is not a user's or a tool's.", "Send the question last.")
    if sum(len(item.text) + len(item.reasoning) for item in body.messages) + len(body.system) > MOST_CHARS:
        raise ProtocolError("The conversation is too long.", "Shorten it.")
    return _ask(body)


def _body(message: m.Ask) -> AskBody:
    if message.body:
        return msgspec.json.decode(message.body.encode(), type=AskBody)
    said = {"messages": message.messages, "system": message.system, "tools": message.tools, "params": message.params}
    return msgspec.convert({name: value for name, value in said.items() if value is not None}, AskBody, strict=False)


def _ask(body: AskBody) -> Ask:
    params = body.params
    return Ask(
        messages=tuple(map(_message, body.messages)),
        system=body.system,
        tools=tuple(Tool(tool.name, tool.description, tool.schema) for tool in body.tools),
        form=_form(params),
        thinking=Thinking(params.thinking, _effort(params.effort), params.thinkBudget),
        most_tokens=params.maxTokens,
        sampling=_sampling(params),
        seed=params.seed,
        bias={int(token): bias for token, bias in params.bias.items()},
        stops=params.stop,
        client=params.client[:40],
    )


def _message(item: TurnItem) -> AskMessage:
    match item.role:
        case "user":
            return UserMessage(item.text, item.aside)
        case "assistant":
            calls = tuple(Call(call.name, call.args) for call in item.calls)
            return AssistantMessage(item.text, calls, item.reasoning)
        case "tool":
            return ToolMessage(item.text)
        case _:
            raise ProtocolError(f"There is no role {item.role[:40]!r}.", "Use user, assistant or tool.")


def _form(params: ParamsItem) -> Form:
    named = params.toolChoice.name if isinstance(params.toolChoice, NamedTool) else ""
    word = "required" if named else params.toolChoice
    choice = next((choice for choice in Choice if choice.value == word), None)
    if choice is None:
        raise ProtocolError("The tool choice is none of auto, none, required or a tool's name.", "Choose one of them.")
    kind = params.format
    return Form(
        choice=choice,
        named=named,
        allowed=params.allowed,
        parallel=params.parallel,
        most_calls=params.maxCalls,
        format=None if kind is None else JsonFormat(kind.schema, kind.name),
    )


def _effort(word: str) -> Effort | None:
    return next((effort for effort in Effort if effort.value == word), None)


def _sampling(params: ParamsItem) -> Sampling | None:
    """None where the program leaves it to the room."""
    if params.temperature is None and params.topK is None:
        return None
    heat = params.temperature if params.temperature is not None else USUAL_TEMPERATURE
    top_k = min(params.topK or USUAL_TOP_K, MAX_TOP_K)
    return Sampling(heat, top_k, params.topP, params.minP)


def ask_message(ask: Ask, rid: str, *, ours: bool, count: bool = False) -> m.Ask:
    """``ours``: the model host is one of our own kind."""
    body = AskBody(
        messages=tuple(map(_turn_item, ask.messages)),
        system=ask.system,
        tools=tuple(ToolItem(tool.name, tool.description, dict(tool.parameters)) for tool in ask.tools),
        params=_params(ask),
    )
    if ours:
        return m.Ask(api=API_LEVEL, rid=rid, body=msgspec.json.encode(body).decode(), count=count)
    raw = _packable(msgspec.to_builtins(body))
    return m.Ask(
        api=API_LEVEL, rid=rid, system=raw.get("system"), messages=raw["messages"], tools=raw.get("tools"),
        params=raw.get("params"),
    )  # fmt: skip


def _packable(value: Any) -> Any:
    """Without the bounds that a published packer cannot carry, such as the smallest safe integer of a schema."""
    if isinstance(value, dict):
        return {name: _packable(kept) for name, kept in value.items() if not _is_too_low(kept)}
    return [_packable(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_too_low(value: object) -> bool:
    return isinstance(value, (int, float)) and value < LOWEST_INTEGER and float(value).is_integer()


def _turn_item(message: AskMessage) -> TurnItem:
    match message:
        case UserMessage():
            return TurnItem("user", message.text, message.aside)
        case AssistantMessage():
            calls = tuple(CallItem(call.name, dict(call.arguments)) for call in message.calls)
            return TurnItem("assistant", message.text, calls=calls, reasoning=message.reasoning)
        case ToolMessage():
            return TurnItem("tool", message.text)


def _params(ask: Ask) -> ParamsItem:
    form, kind = ask.form, ask.form.format
    params = ParamsItem(
        maxTokens=min(max(ask.most_tokens, 1), MOST_TOKENS),
        seed=ask.seed,
        bias={str(token): bias for token, bias in ask.bias.items()},
        stop=ask.stops,
        thinking=ask.thinking.on,
        thinkBudget=ask.thinking.budget,
        effort=ask.thinking.effort.value if ask.thinking.effort else "",
        toolChoice=NamedTool(form.named) if form.named else form.choice.value,
        allowed=form.allowed,
        parallel=form.parallel,
        maxCalls=form.most_calls,
        format=None if kind is None else FormatItem("schema" if kind.schema else "json", _plain(kind), kind.name),
        client=ask.client,
    )
    drawn = ask.sampling
    if drawn is None:
        return params
    return msgspec.structs.replace(
        params, temperature=drawn.temperature, topK=drawn.top_k, topP=drawn.top_p, minP=drawn.min_p
    )


def _plain(kind: JsonFormat) -> dict[str, Any] | None:
    return None if kind.schema is None else dict(kind.schema)


# -- answers ------------------------------------------------------------------------------------------------------


def piece_messages(piece: Piece, rid: str) -> list[m.Message]:
    match piece:
        case Words():
            return [m.Token(text=text, rid=rid) for text in m.in_lines(piece.text)]
        case Reasoning():
            return [m.Token(text=text, rid=rid, th=True) for text in m.in_lines(piece.text)]
        case CallBegun():
            return [m.CallPart(rid=rid, i=piece.index, name=piece.name)]
        case CallArguments():
            return [m.CallPart(rid=rid, i=piece.index, a=text) for text in m.in_lines(piece.text)]
        case CallEnded():
            return [m.CallPart(rid=rid, i=piece.index, end=True)]


def read_event(message: m.Message) -> AskEvent | None:
    """What a message says of the ask it names; None for one that says nothing new."""
    match message:
        case m.Queued():
            return Queued(max(message.pos - 1, 0))
        case m.Busy():
            code = next((code for code in Refusal if code.value == message.code), Refusal.BAD)
            return Refused(code, message.why, message.n, message.max)
        case m.AnswerStart():
            return Started(message.model, message.promptTokens, message.ctx)
        case m.Token():
            return Spoken((Reasoning(message.text) if message.th else Words(message.text),))
        case m.CallPart():
            return Spoken((_call_piece(message),))
        case m.AnswerDone():
            return _ended(message)
        case _:
            return None


def _call_piece(message: m.CallPart) -> Piece:
    if message.end:
        return CallEnded(message.i)
    return CallBegun(message.i, message.name) if message.name else CallArguments(message.i, message.a)


def _ended(message: m.AnswerDone) -> Ended:
    reason = next((reason for reason in Reason if reason.value == message.reason), Reason.FAILED)
    usage = Usage(message.usage.prompt, message.reused, message.usage.out, message.usage.think)
    return Ended(reason, usage, message.stopSeq, message.err)
