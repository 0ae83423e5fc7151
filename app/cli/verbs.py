"""The verbs and their flags (spec: product §4.1). Each reads its part of the command line into a value."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli import flags as f
from app.cli.options import (
    ChatOptions,
    HostOptions,
    JoinOptions,
    ListOptions,
    PullOptions,
    RemoveOptions,
    ServeOptions,
)
from app.core.ports import API_PORT
from app.serve.config import ServeConfig

SPLITS = ("speed", "spread")
EXAMPLE = "4TK-G9P, or the invite link in quotes"
Place = Annotated[str, typer.Argument(metavar="CODE-OR-LINK", help=f"The room: {EXAMPLE}.", show_default=False)]

verbs = typer.Typer(
    name="pooled",
    rich_markup_mode=None,
    suggest_commands=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def model_names(incomplete: str) -> list[str]:
    """For the shell's Tab key."""
    from app.models.rows import full_table

    return [record.key for record in full_table().models if incomplete.lower() in record.key.lower()]


ModelName = Annotated[
    str, typer.Option("--model", help="Part of its name; list shows all.", autocompletion=model_names)
]


@verbs.command()
def host(
    positional: Annotated[str, typer.Argument(metavar="MODEL", help="The model.", autocompletion=model_names)] = "",
    model: ModelName = "",
    gb: f.Gb = None,
    start: Annotated[bool, typer.Option("--start", help="Start the model as soon as it fits.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; start as soon as it fits.")] = False,
    wait: Annotated[
        int, typer.Option("--wait", "--devices", parser=f.devices, help="Start with N devices.", metavar="N")
    ] = 1,
    allow: Annotated[bool, typer.Option("--allow-all", "--auto-allow", help="Let in whoever has the code.")] = False,
    deny: Annotated[bool, typer.Option("--deny-unknown", help="Turn away whoever has no invite link.")] = False,
    split: Annotated[str, typer.Option("--split", help="How layers are dealt.", metavar="speed|spread")] = "",
    ctx: Annotated[
        int | None, typer.Option("--ctx", parser=f.context, help="Context to ask for.", metavar="TOKENS")
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Talk at once, without the panel.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Open the last room again, if it can be.")] = False,
    serve: f.Serve = False,
    port: f.Port = API_PORT,
    token_file: f.TokenFile = None,
    name: f.Name = "",
    signal: f.Signal = None,
    models: f.Models = None,
    no_pull: f.NoPull = False,
    json_log: f.JsonLog = False,
    quiet: f.Quiet = False,
    verbose: f.Verbose = False,
) -> HostOptions:
    """Open a room here."""
    use_folder(models)
    return HostOptions(
        model=_one_model(positional, model), start=start or yes, yes=yes, wait=wait, auto_allow=allow,
        deny_unknown=deny, again=again, split=_split(split), ctx=ctx or 0, chat=chat, gb=_lent(gb),
        most=gb == f.ALL_THERE_IS, fetch=not no_pull, verbose=verbose, serve=_serving(serve, port, token_file),
        name=name, signal=tuple(signal or ()), quiet=quiet, json_log=json_log,
    )  # fmt: skip


@verbs.command()
def join(
    where: Annotated[str, typer.Argument(metavar="CODE-OR-LINK", help=f"The room: {EXAMPLE}.")] = "",
    gb: f.Gb = None,
    wait: Annotated[
        float, typer.Option("--wait", parser=f.duration, help="Look for a lost room so long.", metavar="MINUTES")
    ] = 10,
    serve: f.Serve = False,
    port: f.Port = API_PORT,
    token_file: f.TokenFile = None,
    name: f.Name = "",
    signal: f.Signal = None,
    models: f.Models = None,
    no_pull: f.NothingToPull = False,
    json_log: f.JsonLog = False,
    quiet: f.Quiet = False,
    verbose: f.Verbose = False,
) -> JoinOptions:
    """Join a room and lend this device's memory."""
    use_folder(models)
    asked = not where and sys.stdin.isatty()
    return JoinOptions(
        where="" if asked else _room(where), wait=wait, gb=_lent(gb), most=gb == f.ALL_THERE_IS, verbose=verbose,
        serve=_serving(serve, port, token_file), name=name, signal=tuple(signal or ()), quiet=quiet, json_log=json_log,
    )  # fmt: skip


@verbs.command()
def chat(
    where: Place,
    prompt: Annotated[list[str] | None, typer.Argument(metavar="PROMPT", help="One question; else a talk.")] = None,
    system: Annotated[str, typer.Option("--system", help="How the model should behave.", metavar="TEXT")] = "",
    think: Annotated[bool, typer.Option("--think", help="Let the model reason first.")] = False,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", parser=f.tokens, help="Longest answer.", metavar="N")
    ] = 8192,
    temperature: Annotated[
        float | None, typer.Option("--temperature", parser=f.temperature, help="0 to 2.", metavar="T")
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", parser=f.duration, help="Wait so long for a model.", metavar="SECONDS")
    ] = 120,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours.")] = False,
    name: f.Name = "",
    signal: f.Signal = None,
) -> ChatOptions:
    """Talk to a room's model. Lends nothing."""
    return ChatOptions(
        where=_room(where), prompt=" ".join(prompt or ()), system=system, think=think, most_tokens=max_tokens,
        temperature=temperature, wait=wait, colour=not no_color, name=name, signal=tuple(signal or ()),
    )  # fmt: skip


@verbs.command()
def serve(
    where: Place,
    port: f.Port = API_PORT,
    token_file: f.TokenFile = None,
    token: f.Token = None,
    max_queue: f.MaxQueue = 8,
    origin: f.Origin = None,
    name: f.Name = "",
    signal: f.Signal = None,
    json_log: f.JsonLog = False,
    quiet: f.Quiet = False,
) -> ServeOptions:
    """Use a room from other programs: an OpenAI and Anthropic API on this computer."""
    key = f.token_in(token_file, token)
    serving = ServeConfig(port=port, token=key, max_queue=max_queue, origins=tuple(origin or ()))
    if token:
        typer.echo("Others on this computer can see --token in the list of processes; --token-file hides it.", err=True)
    return ServeOptions(
        where=_room(where), serving=serving, name=name, signal=tuple(signal or ()), json_log=json_log, quiet=quiet
    )


@verbs.command()
def pull(
    wanted: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Parts of their names.", autocompletion=model_names)
    ],
    models: f.Models = None,
) -> PullOptions:
    """Download models, or go on with a download."""
    use_folder(models)
    return PullOptions(tuple(wanted))


@verbs.command("list")
def list_models(
    json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
    models: f.Models = None,
) -> ListOptions:
    """Show all models and what of them is on this computer."""
    use_folder(models)
    return ListOptions(json=json)


@verbs.command("rm")
def remove(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Part of its name.", autocompletion=model_names)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    models: f.Models = None,
) -> RemoveOptions:
    """Delete a model from this computer."""
    use_folder(models)
    return RemoveOptions(model, yes)


def use_folder(models: Path | None) -> None:
    """Everything in this process looks there for models."""
    if models is not None:
        os.environ["POOLED_MODELS"] = str(models.expanduser().absolute())


def _room(where: str) -> str:
    """Raises BadParameter for what is neither a code nor a link."""
    from app.core.errors import RoomError
    from app.room.invite import parse_invite
    from app.room.near import parse_near

    if not where:
        raise typer.BadParameter(f"which room? Give {EXAMPLE}")
    try:
        if parse_near(where) is None:
            parse_invite(where)
    except RoomError as error:
        raise typer.BadParameter(f"{error.what} {error.remedy}") from error
    return where


def _one_model(positional: str, flag: str) -> str:
    if positional and flag and positional != flag:
        raise typer.BadParameter(f"two models were named, {positional[:40]!r} and {flag[:40]!r}")
    return flag or positional


def _split(word: str) -> str:
    if word and word not in SPLITS:
        raise typer.BadParameter(f"{word[:40]!r} is not a way to split; there is {' and '.join(SPLITS)}")
    return word


def _lent(gb: float | None) -> float | None:
    return None if gb == f.ALL_THERE_IS else gb


def _serving(on: bool, port: int, token_file: Path | None) -> ServeConfig | None:
    return ServeConfig(port=port, token=f.token_in(token_file, None)) if on else None
