"""A guided tour: each stop is a function; its source is shown, then what it returned."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import dragoman


def make_messages() -> Any:
    """A conversation is a list of values.

    Five roles, typed parts, nothing that belongs to one provider.
    """
    from dragoman import Image, Message, Messages, ToolCall

    return Messages(
        Message.system("You are a travel guide."),
        Message.user("Where is this?", Image.from_url("https://example.com/bridge.jpg")),
        Message.assistant(
            tool_calls=[ToolCall.create("call_1", "find_place", {"looks": "bridge"})]
        ),
        Message.tool("call_1", "Mostar, Bosnia and Herzegovina"),
        Message.assistant("That is the Old Bridge in Mostar."),
    )


def keep_secrets() -> Any:
    """Printing a message shows its shape, never its content.

    What was said is there when you ask for it: `message.text`, `str(message)`, `to_json()`.
    """
    message = dragoman.Message.user("my password is hunter2")
    return f"{message!r} | {message.preview(14)}"


def store_and_reload() -> Any:
    """One JSON form for everything, versioned, and back into the same types."""
    conversation = make_messages()
    stored = conversation.to_json()
    reloaded = dragoman.Messages.from_json(stored)
    return f"{len(stored)} bytes of JSON, equal after reload: {reloaded == conversation}"


def change_the_provider() -> Any:
    """A request made for one provider goes to another.

    What came in as OpenAI's goes out as Anthropic's, tool call and all.
    """
    openai = dragoman.dialect("openai-chat")
    anthropic = dragoman.dialect("anthropic")
    request = openai.decode_request(
        {
            "model": "gpt-5",
            "max_completion_tokens": 300,
            "messages": [
                {"role": "user", "content": "Where is the Old Bridge?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {
                                "name": "find_place",
                                "arguments": '{"name":"Old Bridge"}',
                            },
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "Mostar"},
            ],
        }
    )
    return anthropic.encode_request(request).body


def lose_nothing() -> Any:
    """The way back is exact: fields that nobody knows yet survive it too."""
    openai = dragoman.dialect("openai-chat")
    body = {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": "Hello", "brand_new_field": {"kept": True}}],
    }
    return openai.encode_request(openai.decode_request(body)).body == body


def say_what_is_wrong() -> Any:
    """Mistakes are told as such: what to do, and nothing quoted."""
    try:
        dragoman.ToolCall.create("call_1", "find place!", {"name": "Old Bridge"})
    except dragoman.DragomanError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


STOPS: tuple[Callable[[], Any], ...] = (
    make_messages,
    keep_secrets,
    store_and_reload,
    change_the_provider,
    lose_nothing,
    say_what_is_wrong,
)


def take() -> None:
    """Walk through all stops."""
    from rich.console import Console
    from rich.pretty import Pretty
    from rich.rule import Rule
    from rich.syntax import Syntax

    console = Console()
    if not console.is_terminal:
        console = Console(width=100, no_color=True)  # a pipe: the same text for every reader
    console.print(f"Dragoman {dragoman.__version__}: a guided tour. Everything below runs now.\n")
    for number, stop in enumerate(STOPS, start=1):
        title, _, more = inspect.cleandoc(stop.__doc__ or "").partition("\n")
        console.print(Rule(f"{number} of {len(STOPS)}: {title}", align="left"))
        if more.strip():
            console.print(more.strip())
        code = Syntax(
            _code_of(stop), "python", background_color="default", padding=(1, 2), word_wrap=True
        )
        console.print(code)
        result = stop()
        shown = f"→ {result}" if isinstance(result, (str, bool)) else Pretty(result)
        console.print(shown, "", sep="\n", markup=False)
    console.print("That was it. README.md says how to go on; `make test` proves the rest.")


def _code_of(stop: Callable[[], Any]) -> str:
    """The body of a function, without its docstring."""
    source = textwrap.dedent(inspect.getsource(stop))
    body = source.split('"""', 2)[2]
    return textwrap.dedent(body).strip("\n")
