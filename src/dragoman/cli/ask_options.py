"""The options of `dragoman ask`, and the request that they make."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dragoman.cli.attachments import (
    STDIN,
    attached,
    expect_files,
    is_there,
    read,
    shown_name,
    text_of,
)
from dragoman.cli.exit_codes import BROKEN, USAGE, Ending
from dragoman.cli.model_aliases import aliases, default_model
from dragoman.cli.model_options import MODEL_VARIABLE

if TYPE_CHECKING:
    from dragoman.agent.prompt_templates import Template
    from dragoman.cli.chat.chat_state import ChatState
    from dragoman.cli.history.stores import Place
    from dragoman.model.requests import Output, Request

_PART = re.compile(r"messages\[0\]\.parts\[(\d+)\]")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `dragoman ask`."""

    system: str | None
    attach: tuple[str, ...]
    schema: str | Mapping[str, Any] | None
    extract: bool
    stream: bool | None
    as_json: bool
    usage: bool
    settings: dict[str, Any]
    template: Template | None
    tools: tuple[str, ...]
    mcp: tuple[str, ...]
    mcp_config: tuple[str, ...]
    is_continued: bool
    session: str | None
    store: Place
    no_history: bool
    saved_as: str | None
    dialect: str | None
    base_url: str | None
    timeout: float | None
    yes: bool

    @property
    def instructions(self) -> str | None:
        """The system prompt: from the command line, or from the template."""
        theirs = None if self.template is None else self.template.system
        return theirs if self.system is None else self.system

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The sources of the tools: files, modules or `builtin`."""
        return self.tools or (() if self.template is None else self.template.tools)

    @property
    def has_schema(self) -> bool:
        """Whether the answer must be JSON that matches a schema."""
        theirs = None if self.template is None else self.template.schema
        return self.schema is not None or theirs is not None

    @property
    def is_in_chat(self) -> bool:
        """Whether the question continues a chat: the named one, or the most recent."""
        return self.is_continued or self.session is not None

    @property
    def is_agent(self) -> bool:
        """Whether an agent is needed: for tools, or for earlier messages."""
        return bool(self.tool_names or self.mcp or self.mcp_config) or self.is_in_chat

    def with_state(self, state: ChatState, *, is_same_model: bool) -> Options:
        """With the stored settings of the chat, unless the command line overrides them.

        If somebody else wrote the history, a remote address and tools are not taken from it: the
        user has to name them again.
        """
        system = self.instructions
        changes: dict[str, Any] = {"system": state.system if system is None else system}
        if state.is_ours:
            changes["tools"] = self.tool_names or state.tools
        if is_same_model:
            changes["dialect"] = self.dialect or state.dialect
            changes["base_url"] = self.base_url or (
                state.base_url if state.is_ours or state.is_here else None
            )
        return replace(self, settings={**state.settings, **self.settings}, **changes)

    def state(self, model: str) -> ChatState:
        """The settings to store with the question."""
        from dragoman.cli.chat.chat_state import ChatState

        return ChatState(
            model=model, base_url=self.base_url, dialect=self.dialect, system=self.instructions,
            settings=self.settings, tools=self.tool_names,
        )  # fmt: skip


def model_and_words(
    words: tuple[str, ...], named: str | None, template: Template | None, last: str | None = None
) -> tuple[str | None, tuple[str, ...]]:
    """The model, and the remaining arguments.

    The first argument is the model if it names one. It may also be a misspelled one, unless a model
    is named elsewhere: with -m, by the template, by the chat that is continued, in the environment,
    as the default.
    """
    if named is not None:
        return named, words
    theirs = None if template is None else template.model
    usual = theirs or last or os.environ.get(MODEL_VARIABLE) or default_model()
    is_meant = _is_meant_as_model if usual is None else names_model
    if words and words != ("-",) and is_meant(words[0]):
        return words[0], words[1:]
    return usual, words


def _is_meant_as_model(word: str) -> bool:
    """Whether a word is a model, a provider, or one of them misspelled, rather than a prompt."""
    from dragoman.errors import DragomanError
    from dragoman.providers.registry import provider, suggested_model
    from dragoman.transport.local.catalogue import PACKAGED

    if names_model(word):
        return True
    if any(map(str.isspace, word)):
        return False
    if ":" in word or suggested_model(word) is not None or word.lower() in PACKAGED:
        return True
    try:
        return provider(word.partition("/")[0]) is not None
    except DragomanError:
        return False


def names_model(word: str) -> bool:
    """Whether a word is `provider:model` with a known provider, or an alias."""
    from dragoman.cli.provider_status import own_model
    from dragoman.errors import DragomanError
    from dragoman.providers.registry import provider

    place, colon, _ = word.partition(":")
    if not colon:
        return word in aliases()
    if any(map(str.isspace, word)) and not word.endswith(".gguf"):
        return False
    try:
        return own_model(word) is not None or provider(place) is not None
    except DragomanError:
        return False


def request_of(words: tuple[str, ...], options: Options) -> tuple[Request, list[str]]:
    """The request, and the names of its attachments: the first parts of its message."""
    from dragoman.cli.request_settings import request_fields
    from dragoman.model.messages import Message
    from dragoman.model.parts import Text
    from dragoman.model.requests import Request

    names = ["-" in options.attach, options.schema == "-", words == ("-",)]
    if sum(names) > 1 or options.attach.count("-") > 1:
        raise Ending(USAGE, f"{STDIN} can be read only once: use - in one place")
    expect_files(options.attach)
    said = _prompt(words, is_taken=names[0] or names[1])
    template = options.template
    prompt = said if template is None else template.filled(said)
    files = attached(options.attach)
    if not prompt and not files:
        raise Ending(USAGE, f"no prompt given: add a PROMPT, or pipe it in; - reads {STDIN}")
    parts = [*files, *([Text(prompt)] if prompt else [])]
    schema = options.schema if options.schema is not None or template is None else template.schema
    system = options.instructions
    request = Request(
        system=() if system is None else (Text(system),),
        messages=(Message.user(*parts),),
        output=_output(schema),
    )
    settings = request_fields(options.settings)
    return request.with_settings(**settings), [shown_name(name) for name in options.attach]


def attachment_of(path: str, files: list[str]) -> str | None:
    """The attachment that a path in the request points to; None if it doesn't point to one."""
    found = _PART.fullmatch(path)
    return files[int(found[1])] if found and int(found[1]) < len(files) else None


# --- the prompt


def _prompt(words: tuple[str, ...], *, is_taken: bool) -> str:
    """Standard input if it is piped, then the arguments."""
    if words == ("-",):
        return _piped()
    said = " ".join(words)
    piped = _piped() if not is_taken and _is_piped() else ""
    return f"{piped}\n\n{said}" if piped and said else piped or said


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file, not a terminal or a device."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except ValueError:  # a stand-in in a test
        return True
    except OSError:  # it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _piped() -> str:
    # Without the trailing newline, as in `$(…)`.
    return text_of(read("-"), STDIN).removesuffix("\n").removesuffix("\r")


# --- the schema of the answer


def schema_given(options: dict[str, Any]) -> None:
    """Merge --schema and --schema-multi into one option."""
    several = options.pop("schema_multi")
    if several is None:
        return
    if options["schema"] is not None:
        raise Ending(USAGE, "--schema and --schema-multi can't be combined")
    made = _output(several)
    items = {} if made is None else {"type": "array", "items": made.schema}
    options["schema"] = {
        "type": "object", "properties": {"items": items}, "required": ["items"],
        "additionalProperties": False,
    }  # fmt: skip


def _output(given: str | Mapping[str, Any] | None) -> Output | None:
    """The output schema: given inline, as a file, or as a list of fields."""
    from dragoman.cli.schema_fields import schema_of_fields
    from dragoman.errors import InvalidInputError
    from dragoman.model.jsontext import loads
    from dragoman.model.requests import Output

    if given is None:
        return None
    if not isinstance(given, str):
        return Output(format="schema", schema=given, strict=True)
    is_inline = given.lstrip().startswith("{")
    if not is_inline and given != "-" and not is_there(given):
        schema: Any = schema_of_fields(given)
        return Output(format="schema", schema=schema, strict=True)
    named = "--schema" if is_inline else shown_name(given)
    try:
        schema = loads(given.encode() if is_inline else read(given))
    except InvalidInputError as error:
        problem = str(error)
    else:
        if isinstance(schema, dict):
            return Output(format="schema", schema=schema, strict=True)
        problem = "a JSON Schema must be an object"
    raise Ending(BROKEN, f"{named}: {problem}")
