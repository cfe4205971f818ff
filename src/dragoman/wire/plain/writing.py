"""The loop that writes plain messages, generated for each dialect from its `Written` table.

A message is plain if no target changes it: a text that is not blank, calls with their results
directly after them and in order, no further fields. Whatever a step of fitting may act on is left
to the steps: the loop stops there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET, MsgspecError
from msgspec.json import Decoder

from dragoman.model.frozen import EMPTY, MAX_DEPTH
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.overlay import has_no_content
from dragoman.wire.rows import compiled

Messages = tuple[Message, ...]


class NotPlain(Exception):  # noqa: N818 - no error: the steps take over
    """There may be more to it."""


class Written(NamedTuple):
    """How a dialect writes plain messages, as expressions and statements of the loop.

    Names in them: `t` a text, `i` a call's id, `x` its tool's name, `a` its arguments, `b` the list
    of a message's calls (and texts, if they are in it), `s` a message's text before its calls,
    `results` the list of a round's results. `add` adds an item to the conversation.
    """

    names: Mapping[str, Any]
    """What the expressions call."""
    user: str
    """The item of a user's text."""
    answer: str
    """The item of a model's text."""
    call: str
    """The item, or the block, of a call."""
    result: str
    """The item, or the block, of a result."""
    text: str | None = None
    """The item or block of a text before calls; None: it is `s` in the message."""
    called: str | None = None
    """The item of a message with calls `b`; None: each call is an item."""
    results: str | None = None
    """The item that holds the results of a round, `results`; None: each is an item."""
    parses: bool = True
    """Whether arguments are an object on the wire, and not a JSON text."""
    refuses: str | None = None
    """Whether arguments `a` take the steps."""


class Span(NamedTuple):
    """Messages between two places where a conversation stands alike, and what they became."""

    first: int
    end: int
    start: int
    """The first item."""
    stop: int
    calls: int
    """The number of calls before."""
    called: int
    """The number of calls up to its end."""

    @property
    def size(self) -> int:
        """The number of messages."""
        return self.end - self.first


Place = tuple[int, int, int]
"""A message, and how many items and calls are before it."""
Stretch = tuple[Place | None, Place | None]
"""The first and the last place of a kind."""


def span_of(stretch: Stretch) -> Span:
    """The messages between two places."""
    first, end = (each or (0, 0, 0) for each in stretch)
    return Span(first[0], end[0], first[1], end[1], first[2], end[2])


class Run(NamedTuple):
    """The plain messages from one on."""

    items: list[Any]
    calls: dict[str, str]
    """The tools' names by the ids of their calls, in order."""
    end: int
    """The first message that is not plain."""
    is_whole: bool
    """Whether all were plain, and each call has its result."""
    kinds: int
    """Which neighbours there are: `USERS`, `ANSWERS`, `USER_AFTER_RESULT`."""
    turns: Stretch
    """From a user's text after an answer to another."""
    steps: Stretch
    """From calls after results to others."""


Write = Callable[[Iterable[Message], int], Run]
"""Writes messages, the first of which has this number, until one is not plain."""


class Begun(NamedTuple):
    """The first run of a conversation, behind instructions."""

    write: Write
    coming: Iterator[Message]
    """The messages behind it."""
    start: int
    run: Run


def begun(messages: Messages, write: Write) -> Begun:
    """Write a conversation as far as it is plain."""
    coming = iter(messages)
    role = messages[0].role if messages else None
    start = int(role is Role.SYSTEM or role is Role.DEVELOPER)
    if start:
        next(coming)
    return Begun(write, coming, start, write(coming, start))


CARRIED = "__thought__"
"""What marks a call's id that holds a signature (LiteLLM)."""
USER, ANSWER, CALLED, RESULT = 1, 2, 3, 4
USERS, ANSWERS, USER_AFTER_RESULT = 1, 2, 4
_harmless: dict[int, Mapping[str, Any]] = {}


def is_silent(extras: Mapping[str, Any]) -> bool:
    """Whether extras only say how something was spelled; many messages share the same."""
    if _harmless.get(id(extras)) is extras:
        return True
    if not has_no_content(extras):
        return False
    if len(_harmless) > 63:  # noqa: PLR2004 - a few are shared, others come once
        _harmless.clear()
    _harmless[id(extras)] = extras
    return True


_decode = Decoder().decode


def _nests(raw: str) -> bool:
    """Whether arguments may be nested too deeply."""
    return raw.count("{") + raw.count("[") > MAX_DEPTH


_PLAIN_TEXT = "p.extras is E and p.cache is None and p.citations == () and p.signature is None"
_PLAIN_CALL = (
    "p.extras is E and p.cache is None and p.kind == 'function' and p.signature is None"
    " and p.wire_id is U"
)
_PLAIN_RESULT = (
    "p.extras is E and p.cache is None and p.is_error is None and p.kind == 'function'"
    " and p.signature is None and p.data is U"
)


def writer(dialect: str, form: Written) -> Write:
    """The loop of a dialect."""
    names = {
        **form.names, "E": EMPTY, "U": UNSET, "Text": Text, "ToolCall": ToolCall,
        "ToolResult": ToolResult, "NotPlain": NotPlain,
        "MsgspecError": MsgspecError, "ASSISTANT": Role.ASSISTANT,
        "SEEN": Role.USER, "TOOL": Role.TOOL, "is_silent": is_silent, "HERE": dialect,
        "parsed": _decode,
        "nests": _nests, "Run": Run,
    }  # fmt: skip
    made: Write = compiled(dialect, "write", _source(form), names)
    return made


def _source(form: Written) -> Iterator[str]:  # noqa: PLR0915 - the loop, line by line
    text = f"b.append({form.text})" if form.called else f"add({form.text})"
    if form.text is None:
        text = "s = t"
    call = f"b.append({form.call})" if form.called else f"add({form.call})"
    yield "def write(messages, start):"
    yield "    out = []; add = out.append; names = {}; waiting = []; results = None; before = 0"
    yield "    turn = turn_end = step = step_end = o = q = None; n = start - 1; kinds = 0"
    yield "    is_whole = False"
    yield "    try:"
    yield "        for m in messages:"
    yield "            n += 1; g = m.origin"
    yield "            if g is not o:"
    yield "                if g is not None and g.dialect == HERE: raise NotPlain"
    yield "                o = g"
    yield "            e = m.extras"
    yield "            if e is not E and e is not q:"
    yield "                if not is_silent(e): raise NotPlain"
    yield "                q = e"
    yield "            if m.name is not None: raise NotPlain"
    yield "            role = m.role; parts = m.parts"
    yield "            if waiting and role is not TOOL: raise NotPlain"
    # the model's messages
    yield "            if role is ASSISTANT:"
    yield "                results = None"
    yield "                if not parts: raise NotPlain"
    yield f"                if before == {ANSWER}: kinds |= {ANSWERS}"
    yield "                p = parts[0]"
    yield "                if len(parts) == 1 and type(p) is Text:"
    yield from _checked_text("                    ")
    yield f"                    add({form.answer}); before = {ANSWER}; continue"
    yield f"                if before == {RESULT}:"
    yield "                    step_end = n, len(out), len(names)"
    yield "                    if step is None: step = step_end"
    yield "                s = U; b = []"
    yield "                for p in parts:"
    yield "                    if type(p) is ToolCall:"
    yield f"                        if not ({_PLAIN_CALL}): raise NotPlain"
    yield "                        i = p.id; x = p.name; r = p.raw"
    yield "                        if not i or i in names: raise NotPlain"
    if form.parses:
        yield "                        if r is None: a = p.input"
        yield f"                        elif len(r) > {MAX_DEPTH} and nests(r): raise NotPlain"
        yield "                        else:"
        yield "                            a = parsed(r)"
        yield "                            if type(a) is not dict: raise NotPlain"
    else:
        yield "                        a = p.raw_arguments if r is None else r"
        yield "                        if not a or a.isspace(): raise NotPlain"
    if form.refuses:
        yield f"                        if {form.refuses}: raise NotPlain"
    yield f"                        names[i] = x; waiting.append(i); {call}"
    yield "                    elif type(p) is Text and not waiting and s is U:"
    yield from _checked_text("                        ")
    yield f"                        s = 0; {text}"
    yield "                    else: raise NotPlain"
    yield "                if not waiting: raise NotPlain"
    if form.called:
        yield f"                add({form.called})"
    yield f"                waiting.reverse(); before = {CALLED}"
    # results
    yield "            elif role is TOOL:"
    yield "                for p in parts:"
    yield "                    if type(p) is not ToolResult: raise NotPlain"
    yield "                    i = p.call_id; t = p.content"
    yield "                    if not waiting or waiting.pop() != i: raise NotPlain"
    yield "                    if type(t) is not str or not t or t.isspace(): raise NotPlain"
    yield f"                    if not ({_PLAIN_RESULT}): raise NotPlain"
    yield "                    x = names[i]"
    yield "                    if p.tool_name is not None and p.tool_name != x: raise NotPlain"
    if form.results:
        yield "                    if results is None:"
        yield f"                        results = []; add({form.results})"
        yield f"                    results.append({form.result})"
    else:
        yield f"                    add({form.result})"
    yield f"                before = {RESULT}"
    # the user's messages
    yield "            elif role is SEEN:"
    yield "                results = None"
    yield "                if len(parts) != 1: raise NotPlain"
    yield "                p = parts[0]"
    yield "                if type(p) is not Text: raise NotPlain"
    yield from _checked_text("                ")
    yield f"                if before == {USER}: kinds |= {USERS}"
    yield f"                elif before == {RESULT}: kinds |= {USER_AFTER_RESULT}"
    yield f"                elif before == {ANSWER}:"
    yield "                    turn_end = n, len(out), len(names)"
    yield "                    if turn is None: turn = turn_end"
    yield f"                add({form.user}); before = {USER}"
    yield "            else: raise NotPlain"
    yield "        n += 1; is_whole = not waiting"
    yield "    except (NotPlain, MsgspecError, ValueError, RecursionError): pass"
    yield "    return Run(out, names, n, is_whole, kinds, (turn, turn_end),"
    yield "               (step, step_end))"


def _checked_text(pad: str) -> Iterator[str]:
    yield f"{pad}t = p.text"
    yield f"{pad}if not t or t.isspace() or not ({_PLAIN_TEXT}): raise NotPlain"
