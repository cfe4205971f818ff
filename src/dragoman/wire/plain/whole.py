"""Encodes requests in which everything is plain, without any step: most small requests.

What a dialect writes for plain settings and tools is in its `plain` module (`Whole`). Whether a
target takes that unchanged is not stated: the general path encodes a few samples for the target,
when it is used for the second time, and what comes out the same is written this way from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder, Encoder

from dragoman.errors import DragomanError
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.requests import BLANK, UNSAID, Request, Sampling
from dragoman.model.roles import Role
from dragoman.model.tools import (
    ToolDefinition,
    make_call,
    make_definition,
    make_result,
    schema_text,
)
from dragoman.wire.context import Context
from dragoman.wire.encoded import Encoded
from dragoman.wire.overlay import spelling_key
from dragoman.wire.plain.schemas import is_plain, is_plain_text, takes_common
from dragoman.wire.plain.writing import CARRIED, Begun, NotPlain, Run, Write, begun, is_silent
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.target import Target

_MOST, _MOST_BYTES = 256, 4 * 2**20
"""Tools that are remembered for each target: lists, and bytes of all their schemas."""
_encode = Encoder().encode
_decode = Decoder().decode
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
_SYSTEM, _DEVELOPER, _ASSISTANT, _USER = (
    Role.SYSTEM, Role.DEVELOPER, Role.ASSISTANT, Role.USER,
)  # fmt: skip


class Made(NamedTuple):
    """What a body is made of, besides settings."""

    items: list[Any]
    """The messages."""
    instructions: str | None
    role: Role | None
    """Whose instructions they are."""
    tools: list[Any]


class Whole(NamedTuple):
    """What a dialect writes for plain settings and tools."""

    body: Callable[[Request, Made, Target], tuple[dict[str, Any], str]]
    """The body and its path; raises `NotPlain`."""
    tool: Callable[[str, str | None, Any], Any]
    """A tool, by name, description and schema."""
    profile: Callable[[Target], Profile]
    """What schemas of tools may have."""


class Simple(NamedTuple):
    """What a target takes unchanged."""

    roles: frozenset[Role | None]
    """The roles of instructions; None: it takes requests without any."""
    context: Context
    neighbours: bool
    """Whether messages of one role may follow each other."""
    takes_prompt: bool
    """Whether instructions may be in `Request.system`."""
    reals: frozenset[str]
    """Which of temperature and `top_p` it takes, one of them and between 0 and 1."""
    tools: dict[int, tuple[Any, list[Any], int]]
    """What was made of tools that came before, by their identity, and their size."""


def note_target(
    target: Target,
    dialect: str,
    known: Whole,
    write: Write,
    general: Callable[[Request], Encoded],
) -> None:
    """Find out what a target takes unchanged, when it is used for the second time."""
    if "plain" not in target.findings:
        target.findings["plain"] = False  # for one request, finding out is not worth it
    elif target.findings["plain"] is False:
        target.findings["plain"] = _simple(target, dialect, known, write, general)


def encoded_whole(
    request: Request, target: Target, dialect: str, known: Whole, simple: Simple, begun: Begun
) -> Encoded | None:
    """The encoded request; None if something in it is not plain."""
    try:
        made, path = _written(request, target, dialect, known, begun.run, simple)
        raw = _encode(made)
    except (NotPlain, MsgspecError, UnicodeError, TypeError, ValueError, RecursionError):
        return None
    return Encoded(None, path, EMPTY, (), (), simple.context, raw)


def _written(
    request: Request, target: Target, dialect: str, known: Whole, run: Run, simple: Simple
) -> tuple[dict[str, Any], str]:
    _check_settings(request, target, dialect, simple.reals)
    messages = request.messages
    if not messages:
        raise NotPlain
    said, role, first = _first(request, simple, dialect)
    if role not in simple.roles or len(messages) <= first:
        raise NotPlain
    if not run.is_whole or not run.items:
        raise NotPlain
    if messages[first].role is not _USER or messages[-1].role is _ASSISTANT:
        raise NotPlain
    if run.kinds and not simple.neighbours:
        raise NotPlain
    if run.calls:
        _check_calls(run.calls, request, target)
    tools = _tools(request.tools, target, dialect, known, simple) if request.tools else []
    return known.body(request, Made(run.items, said, role, tools), target)


def _first(request: Request, simple: Simple, dialect: str) -> tuple[str | None, Role | None, int]:
    """The instructions, whose they are, and the first message behind them."""
    leads = request.messages[0].role in (_SYSTEM, _DEVELOPER)
    if request.system:
        if leads or not simple.takes_prompt:
            raise NotPlain
        return _plain_text(request.system), _SYSTEM, 0
    if leads:
        role, said = _instructions(request.messages[0], dialect)
        return said, role, 1
    return None, None, 0


def _check_calls(calls: Mapping[str, str], request: Request, target: Target) -> None:
    """Raise unless the target takes these calls: the names of their tools by their ids."""
    if not request.tools or not target.ids.accepts_all(calls.keys()):
        raise NotPlain
    accepts = target.tools.accepts_name
    for name in calls.values():
        if not accepts(name):
            raise NotPlain
    if CARRIED in "".join(calls):
        raise NotPlain


def _check_settings(request: Request, target: Target, dialect: str, reals: frozenset[str]) -> None:
    """Raise unless there are only a model, a limit, one of the reals, and whether to stream."""
    if (
        request.model is None or request.tool_choice is not None
        or request.output is not None or request.thinking is not None
        or request.state is not None or request.media is not None
        or request.service is not None or request.context_management is not None
    ):  # fmt: skip
        raise NotPlain
    extras = request.extras
    if extras is not EMPTY and (not is_silent(extras) or spelling_key(dialect) in extras):
        raise NotPlain
    sampling = request.sampling
    if sampling is UNSAID:
        return
    if (
        sampling.top_k is not None or sampling.stop or sampling.seed is not None
        or sampling.presence_penalty is not None or sampling.frequency_penalty is not None
        or sampling.choices is not None or sampling.logprobs is not None
        or sampling.top_logprobs is not None or sampling.verbosity is not None
    ):  # fmt: skip
        raise NotPlain
    if sampling.temperature is not None or sampling.top_p is not None:
        given = reals_of(request)
        if len(given) > 1 or not all(name in reals and 0 < given[name] < 1 for name in given):
            raise NotPlain
    limit = sampling.max_tokens
    if limit is not None and (limit < 1 or limit < target.sampling.min_output_tokens):
        raise NotPlain


def _instructions(message: Message, dialect: str) -> tuple[Role, str]:
    """Instructions that are one plain text."""
    origin = message.origin
    if message.name is not None:
        raise NotPlain
    if message.extras is not EMPTY and not is_silent(message.extras):
        raise NotPlain
    if origin is not None and origin.dialect == dialect:
        raise NotPlain
    return message.role, _plain_text(message.parts)


def _plain_text(parts: Sequence[Any]) -> str:
    """The only part, a plain text; raises `NotPlain`."""
    (part,) = parts if len(parts) == 1 else (None,)
    if type(part) is not Text:
        raise NotPlain
    text = part.text
    if not text or text.isspace() or part.extras is not EMPTY or part.cache is not None:
        raise NotPlain
    if part.citations or part.signature is not None:
        raise NotPlain
    return text


def _tools(
    tools: tuple[Any, ...], target: Target, dialect: str, known: Whole, simple: Simple
) -> list[Any]:
    found = simple.tools.get(id(tools))
    if found is not None and found[0] is tools:
        return found[1]
    profile, accepts = known.profile(target), target.tools.accepts_name
    made: list[Any] = []
    names: set[str] = set()
    for tool in tools:
        if type(tool) is not ToolDefinition or not _is_plain_tool(tool, dialect):
            raise NotPlain
        name = tool.name
        schema: Any = schema_text(tool) or tool.parameters
        if name in names or not accepts(name):
            raise NotPlain
        names.add(name)
        if schema is None:
            schema = _NO_PARAMETERS
        elif schema.__class__ is not Raw:
            if not is_plain(schema, profile):
                raise NotPlain
        elif not takes_common(profile) and not is_plain_text(bytes(schema), profile):
            raise NotPlain
        made.append(known.tool(name, tool.description, schema))
    _remember(simple, tools, made)
    return made


def _remember(simple: Simple, tools: tuple[Any, ...], made: list[Any]) -> None:
    size = len(_encode(made))
    kept = sum([each[2] for each in tuple(simple.tools.values())])  # other threads add to them
    if len(simple.tools) >= _MOST or kept > _MOST_BYTES:
        simple.tools.clear()
    if size <= _MOST_BYTES // 4:
        simple.tools[id(tools)] = tools, made, size


def _is_plain_tool(tool: ToolDefinition, dialect: str) -> bool:
    origin = tool.origin
    return (
        tool.kind == "function" and tool.strict is None and tool.cache is None
        and tool.extras is EMPTY and tool.format is None and tool.defer_loading is None
        and tool.allowed_callers == () and tool.output_schema is None
        and (origin is None or origin.dialect != dialect)
    )  # fmt: skip


_REALS = ("temperature", "top_p")


def reals_of(request: Request) -> dict[str, float]:
    """The temperature or `top_p` of a request that has one."""
    given = {name: getattr(request.sampling, name) for name in _REALS}
    return {name: value for name, value in given.items() if value is not None}


# --- finding out what a target takes

_SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}
_TOOLS = (
    make_definition("sample_one", "One.", _SCHEMA, None),
    make_definition("sample_two", None, _SCHEMA, None),
)


def _user(text: str = "A question.") -> Message:
    return make_message(Role.USER, (Text(text),))


def _answer() -> Message:
    return make_message(Role.ASSISTANT, (Text("An answer."),))


def _round(number: int) -> tuple[Message, ...]:
    calls = [make_call(f"call{number}{n}", "sample_one", '{"x": "1"}') for n in range(2)]
    results = [make_message(Role.TOOL, (make_result(call.id, "R"),)) for call in calls]
    return (make_message(Role.ASSISTANT, (Text("See."), *calls)), *results)


def _samples(role: Role | None, prompt: tuple[Text, ...] = ()) -> Iterable[Request]:
    first = () if role is None else (make_message(role, (Text("Be brief."),)),)
    limited = Sampling(max_tokens=100)
    for said in (
        (_user(),),
        (_user(), _answer(), _user()),
        (_user(), *_round(1)),
        (_user(), *_round(1), *_round(2), _answer(), _user()),
    ):
        for tools in ((), _TOOLS):
            for stream, sampling in ((None, UNSAID), (True, limited), (False, limited)):
                yield BLANK.replace_trusted(
                    model="m", messages=(*first, *said), tools=tools, stream=stream,
                    sampling=sampling, system=prompt,
                )  # fmt: skip


def _real_samples(name: str) -> Iterable[Request]:
    for value in (0.25, 0.75):
        given: dict[str, Any] = {name: value, "max_tokens": 100}
        yield BLANK.replace_trusted(
            model="m", messages=(_user(), _answer(), _user()), sampling=Sampling(**given)
        )


_NEIGHBOURS = BLANK.replace_trusted(
    model="m",
    messages=(
        _user(), _user("More."), _answer(), _answer(), *_round(1), _user(), _answer(), *_round(2),
        _answer(), _user(),
    ),
    tools=_TOOLS,
    sampling=Sampling(max_tokens=100),
)  # fmt: skip


def _simple(
    target: Target,
    dialect: str,
    known: Whole,
    write: Write,
    general: Callable[[Request], Encoded],
) -> Simple:
    """What the target takes unchanged, as the general path shows."""
    contexts: list[Context] = []

    def is_alike(request: Request, simple: Simple) -> bool:
        try:
            run = begun(request.messages, write).run
            wire, path = _written(request, target, dialect, known, run, simple)
        except NotPlain:
            return True  # it takes the steps, anyway
        try:
            made = general(request)
            found = _decode(_encode(made.body))
        except (DragomanError, MsgspecError):
            return False
        contexts.append(made.context)
        is_same = found == _decode(_encode(wire)) and made.path == path
        return is_same and not made.losses and not made.repairs and not made.headers

    def simple(
        roles: Iterable[Role | None], reals: Iterable[str] = (), *, takes_all: bool = False
    ) -> Simple:
        return Simple(frozenset(roles), Context(), takes_all, takes_all, frozenset(reals), {})

    def tried(role: Role | None) -> bool:
        only = simple((role,))
        return all(is_alike(each, only) for each in _samples(role))

    roles = frozenset([role for role in (None, _SYSTEM, _DEVELOPER) if tried(role)])
    every = simple(roles, _REALS, takes_all=True)
    prompted = _samples(None, (Text("Be brief."),))
    takes_prompt = bool(roles) and all(is_alike(each, every) for each in prompted)
    neighbours = bool(roles) and is_alike(_NEIGHBOURS, every)
    reals = frozenset(
        [name for name in _REALS if all(is_alike(each, every) for each in _real_samples(name))]
    )
    if not contexts or any(_said(each) != _said(contexts[0]) for each in contexts):
        roles = frozenset()
    context = contexts[0] if contexts else Context()
    return Simple(roles, context, neighbours, takes_prompt, reals, {})


def _said(context: Context) -> list[Any]:
    return [getattr(context, name) for name in Context.__slots__]
