"""A chat that is taken up again: with what it was held with, unless the user says otherwise."""

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
"""Asks the user; where nobody is there it says what is not done, and that is a no."""

_PREVIEW = 70


def continued(options: Options, state: ChatState, agree: Agree) -> Options:
    """What was said on the command line, and for the rest what the chat was held with before."""
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
    """Whether the model can be named so: an alias may have been removed since."""
    return model is not None and names_model(model)


def agreed_address(state: ChatState, agree: Agree) -> str | None:
    """Where the chat was held; where somebody else says so, and elsewhere, if the user agrees.

    The key goes along with each request.
    """
    if state.is_ours or state.is_here:
        return state.base_url
    place = clipped(harmless_line(state.base_url or ""))
    question = f"The chat was held at {place}, and a key would go there. Go on there?"
    return state.base_url if agree(question) else None


def agreed_tools(state: ChatState, agree: Agree) -> tuple[str, ...]:
    """The tools that the chat had; where somebody else says so, if the user agrees.

    To load them is to run their code.
    """
    if state.is_ours:
        return state.tools
    others = [each for each in state.tools if each != BUILT_IN]
    names = clipped(harmless_line(", ".join(others)))
    if others and not agree(f"The chat had tools from {names}. Load them?"):
        return tuple(each for each in state.tools if each == BUILT_IN)
    return state.tools


def take_over(talk: Talk) -> None:
    """Go on in the session that was moved to, with what it was held with."""
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
        except Ending as ending:  # its key is gone, say: the chat goes on with the model it has
            talk.screen.complain(ending.message or "that model can't be asked")
    sources = agreed_tools(state, agree)
    if sources:
        talk.change(tools=tools_named(sources))
        talk.tool_names = sources
    for line in described(talk):
        talk.screen.note(line)


def described(talk: Talk) -> list[str]:
    """What a chat is held with besides its model and tools, for people."""
    found: list[str] = []
    if talk.system:
        found.append(f"instructions: {clipped(' '.join(talk.system.split()), _PREVIEW)}")
    if talk.settings:
        told = ", ".join(f"{name} {value}" for name, value in talk.settings.items())
        found.append(f"settings: {clipped(told, _PREVIEW)}")
    if talk.template is not None and talk.template.prompt is not None:
        found.append(f"template: {talk.template.name}")
    return found
