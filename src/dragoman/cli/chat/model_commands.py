"""Chat commands about the model: model, system prompt, settings, tools."""

from __future__ import annotations

from typing import Any

from dragoman.cli.chat.completion import Candidate, ModelNames, files, fitting
from dragoman.cli.chat.talk import Talk
from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.cli.mcp_tools import tools_of
from dragoman.cli.model_opening import model_meant, opened, settings_of
from dragoman.cli.provider_status import own_model
from dragoman.cli.request_settings import (
    UNSET,
    known_setting,
    setting_names,
    setting_value,
    suggested,
)
from dragoman.cli.small_model import is_small

SWITCHES = {
    "usage": "show tokens and cost after each answer",
    "show_thinking": "show the model's thinking in full",
}
"""Settings of the chat itself, besides those of a request."""

_ON = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False,
       UNSET: False}  # fmt: skip
_MODELS = ModelNames()
model_names = _MODELS.complete


def choose_model(talk: Talk, rest: str) -> None:
    """`/model`: show the current model, or switch to another."""
    if not rest:
        talk.screen.note(
            f"the model is {talk.agent.model.name}; to switch, type /model NAME (Tab completes"
            " names), as in /model anthropic:claude-sonnet-4-5",
        )
        return
    named, _, dialect = rest.partition(" ")
    switch_model(talk, named, dialect.strip() or None, None)
    spoken = f" in {dialect.strip()}" if dialect.strip() else ""
    talk.screen.note(f"now using {talk.agent.model.name}{spoken}")
    tell_losses(talk)


def switch_model(talk: Talk, named: str, dialect: str | None, given_url: str | None) -> None:
    """Switch to another model; raises `Ending` if it can't be opened."""
    meant = model_meant(named)
    name, base_url = meant.name, given_url or meant.base_url
    settings = settings_of(name, dialect=dialect, base_url=base_url)
    model = opened(name, settings, may_fetch=talk.may_fetch)
    before = talk.agent
    talk.agent, talk.base_url = before.with_model(model), base_url
    talk.named, talk.dialect, talk.given_url = named, dialect, given_url
    talk.chooses_tools = chooses_tools(name)
    if before.model.name == model.name:
        talk.retired.append(before.model)  # we run its server, which takes a while to start
    else:
        talk.run(before.model.close())


def chooses_tools(model: str) -> bool:
    """Whether the model can decide when to call a tool; the bundled small one can't."""
    return not is_small(model)


def system(talk: Talk, rest: str) -> None:
    """`/system`: show or change the system prompt."""
    if not rest:
        talk.screen.note(talk.system or "there is no system prompt; /system TEXT sets one")
        return
    cleared = rest.lower() == UNSET
    talk.change(system=None if cleared else rest)
    talk.screen.note("system prompt removed" if cleared else "system prompt set")


# --- settings


def set_setting(talk: Talk, rest: str) -> None:
    """`/set`: show the settings, or change one."""
    name, text = _name_and_value(rest)
    if not name:
        _show_settings(talk)
    elif name in SWITCHES:
        _switch(talk, name, text)
    elif not text:
        name = known_setting(name)
        value = talk.settings.get(name)
        talk.screen.note(f"{name}: {'provider default' if value is None else value}")
    else:
        _change(talk, known_setting(name), text)


def _name_and_value(rest: str) -> tuple[str, str]:
    """`temperature 0.2` and `temperature=0.2`."""
    first = rest.split(maxsplit=1)
    if first and "=" in first[0]:
        name, _, value = rest.partition("=")
        return name.strip().lower(), value.strip()
    return (first[0].lower() if first else ""), (first[1].strip() if len(first) > 1 else "")


def _change(talk: Talk, name: str, text: str) -> None:
    settings: dict[str, Any] = {**talk.settings}
    if text.lower() == UNSET:
        settings.pop(name, None)
    else:
        settings[name] = setting_value(name, text)
    talk.change(settings=settings)
    talk.screen.note(f"{name}: {settings.get(name, 'provider default')}")
    if name in settings:
        tell_losses(talk, name)


def tell_losses(talk: Talk, name: str | None = None) -> None:
    """Report the settings (or the one named) that the model doesn't support."""
    from dragoman.cli.request_settings import request_fields
    from dragoman.model.messages import Message
    from dragoman.model.requests import Request
    from dragoman.transport.client import Client

    model, fields = talk.agent.model, request_fields(talk.settings)
    wanted = fields if name is None else {name: fields[name]}
    if not isinstance(model, Client) or not wanted:
        return
    probe = Request(messages=(Message.user("?"),)).with_settings(**wanted)
    for loss in model.encode(probe).losses:
        talk.screen.note(f"{loss.path} is not sent to {model.name}: {loss.reason}")


def _switch(talk: Talk, name: str, text: str) -> None:
    if text and text.lower() not in _ON:
        raise Ending(USAGE, f"{name}: must be on or off")
    if text:
        setattr(talk, f"shows_{name.removeprefix('show_')}", _ON[text.lower()])
        talk.screen.shows_thinking = talk.shows_thinking
    is_on = getattr(talk, f"shows_{name.removeprefix('show_')}")
    talk.screen.note(f"{name}: {'on' if is_on else 'off'}")


def _show_settings(talk: Talk) -> None:
    switched = {"usage": talk.shows_usage, "show_thinking": talk.shows_thinking}
    chosen = [(name, str(value), "") for name, value in talk.settings.items()]
    chosen += [(name, "on" if switched[name] else "off", SWITCHES[name]) for name in SWITCHES]
    talk.screen.table(("setting", "value", ""), chosen)
    others = ", ".join(name for name in setting_names() if name not in talk.settings)
    talk.screen.note(f"not set (the provider's defaults): {others}",
                     f"/set NAME VALUE changes a setting; the value {UNSET} resets it")  # fmt: skip


async def set_names(_talk: Talk, typed: str) -> list[Candidate]:
    """Setting names, and suggested values."""
    name, space, value = typed.partition(" ")
    if space:
        values = ("on", "off") if name in SWITCHES else suggested(name)
        return fitting(value.lstrip(), values)
    return fitting(typed, [*SWITCHES.items(), *((each, "") for each in setting_names())])


# --- tools


def tools(talk: Talk, rest: str) -> None:
    """`/tools`: list the tools, or load more."""
    if rest:
        _load(talk, rest)
    offered = talk.offered
    if not offered:
        talk.screen.note("there are no tools; load some with /tools FILE.py or /tools builtin")
        return
    rows = [
        (
            each.name,
            (each.definition.description or "").partition("\n")[0],
            "asks first" if each.requires_approval else "",
        )
        for each in offered
    ]
    talk.screen.table(("tool", "description", ""), rows)
    if not talk.chooses_tools:
        talk.screen.note("this model is too small to choose tools itself; call one with /tool NAME")


def _load(talk: Talk, source: str) -> None:
    from dragoman.cli.chat.toolset import tools_named

    named = source.strip("'\"")
    loaded = tools_named((named,))
    names = {each.name for each in loaded}
    talk.change(tools=[*(each for each in talk.tools if each.name not in names), *loaded])
    talk.tool_names = (*(each for each in talk.tool_names if each != named), named)


def call_tool(talk: Talk, rest: str) -> None:
    """`/tool`: send a message, and make the model call a tool."""
    name, _, said = rest.partition(" ")
    offered = [each.name for each in talk.offered]
    if name not in offered:
        known = ", ".join(offered) or "none"
        raise Ending(USAGE, f"name a tool: {known}")
    if (own := own_model(talk.agent.model.name)) is not None and own.kind == "echo":
        talk.say(f"/tool {rest}")  # echo: reads the tool call from the text
    else:
        talk.say(said.strip() or f"Call {name}.", tool_choice=name)


async def tool_names(talk: Talk, typed: str) -> list[Candidate]:
    """The names of the tools."""
    offered = [*talk.tools, *await tools_of(talk.servers)]
    named = [(each.name, each.definition.description or "") for each in offered]
    return fitting(typed, [(name, about.partition("\n")[0]) for name, about in named])


async def tool_sources(talk: Talk, typed: str) -> list[Candidate]:
    """Python files, and `builtin`."""
    found = [each for each in await files(talk, typed) if each.text.endswith((".py", "/"))]
    return [*fitting(typed, ["builtin"]), *found]
