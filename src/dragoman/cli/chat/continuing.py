"""Restores the state of a continued chat, unless the user overrides it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dragoman.cli.ask_options import names_model
from dragoman.cli.chat.chat_state import ChatState, state_of
from dragoman.cli.chat.model_commands import switch_model
from dragoman.cli.chat.sessions import last_model
from dragoman.cli.chat.toolset import BUILT_IN, tools_named
from dragoman.cli.exit_codes import Ending
from dragoman.cli.screen import clipped, harmless_line

if TYPE_CHECKING:
    from dragoman.cli.chat.options import Options
    from dragoman.cli.chat.talk import Talk

Agree = Callable[[str], bool]
"""Asks the user a question; without a terminal it reports what is skipped, and returns False."""

_PREVIEW = 70


def continued(options: Options, state: ChatState, agree: Agree) -> Options:
    """The options of the command line, with the stored state of the chat for the rest."""
    tools = options.tools
    if not tools and not options.no_tools:
        tools = agreed_tools(state, agree)
    named: dict[str, Any] = {}
    if options.model is None and is_known(state.model):
        named["model"] = state.model
        named["dialect"] = options.dialect or state.dialect
        named["base_url"] = options.base_url or agreed_address(state, agree)
    return replace(
        options,
        **named,
        system=state.system if options.system is None else options.system,
        settings={**state.settings, **options.settings},
        template=options.template or state.template,
        tools=tools,
    )


def is_known(model: str | None) -> bool:
    """Whether the model name is still valid: an alias may have been removed since."""
    return model is not None and names_model(model)


def agreed_address(state: ChatState, agree: Agree) -> str | None:
    """The stored base URL; one that somebody else wrote needs the user's consent if it is remote.

    The API key is sent with each request.
    """
    if state.is_ours or state.is_here:
        return state.base_url
    place = clipped(harmless_line(state.base_url or ""))
    question = f"This chat used the server {place}, which would get your API key. Use it again?"
    return state.base_url if agree(question) else None


def agreed_tools(state: ChatState, agree: Agree) -> tuple[str, ...]:
    """The stored tools; those that somebody else wrote need the user's consent.

    Loading them runs their code.
    """
    if state.is_ours:
        return state.tools
    others = [each for each in state.tools if each != BUILT_IN]
    names = clipped(harmless_line(", ".join(others)))
    if others and not agree(f"This chat used tools from {names}. Load and run their code?"):
        return tuple(each for each in state.tools if each == BUILT_IN)
    return state.tools


def take_over(talk: Talk) -> None:
    """Restore the state of the session just switched to."""
    messages = talk.run(talk.history.messages())
    state = state_of(messages)

    def agree(question: str) -> bool:
        try:
            return talk.lines.answer(f"{question} [Y/n] ").strip().lower() in {"", "y", "yes"}
        except (EOFError, KeyboardInterrupt):
            return False

    talk.change(system=state.system, settings={**state.settings})
    talk.template = state.template
    named = state.model if is_known(state.model) else last_model(messages)
    if named is not None and (named, state.dialect) != (talk.named, talk.dialect):
        try:
            switch_model(talk, named, state.dialect, agreed_address(state, agree))
        except Ending as ending:  # such as a missing key: the chat keeps its current model
            talk.screen.complain(ending.message or "that model can't be used")
    sources = agreed_tools(state, agree)
    if sources:
        talk.change(tools=tools_named(sources))
        talk.tool_names = sources
    for line in described(talk):
        talk.screen.note(line)


def described(talk: Talk) -> list[str]:
    """A description of the state besides the model and tools."""
    found: list[str] = []
    if talk.system:
        found.append(f"system prompt: {clipped(' '.join(talk.system.split()), _PREVIEW)}")
    if talk.settings:
        told = ", ".join(f"{name} {value}" for name, value in talk.settings.items())
        found.append(f"settings: {clipped(told, _PREVIEW)}")
    if talk.template is not None and talk.template.prompt is not None:
        found.append(f"template: {talk.template.name}")
    return found
