"""Middleware for the gateway: a limit on prompts, a content rule, and a count of tokens.

    python examples/gateway_middleware.py         # tries the hooks, without a server

    # dragoman.toml
    [server]
    middleware = ["examples/gateway_middleware.py"]

    pip install 'dragoman[cli,gateway]' && dragoman serve --check && dragoman serve

Shows the hooks `route`, `before` and `after`. They get requests of every API that the gateway
serves as a `Request`; an exception that they raise becomes an error in the client's API.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from dragoman import Message, Request, Response, Text
from dragoman.errors import InvalidRequest
from dragoman.gateway.middleware import Info

LONGEST = 200_000
LONG = 20_000
RULE = Text("Answer in the user's language. Never give legal advice.")

tokens: Counter[str] = Counter()


def size(request: Request) -> int:
    """The number of characters in a prompt."""
    return sum(len(message.text) for message in request.messages)


def route(request: Request, info: Info) -> str | None:
    """Send long prompts for `auto` to the route `large`, all others to `small`."""
    if info.model != "auto":
        return None
    return "large" if size(request) > LONG else "small"


async def before(request: Request, info: Info) -> Request:  # noqa: ARG001 - the gateway gives both
    """Reject prompts that are too long; add the rule to the system prompt."""
    if size(request) > LONGEST:
        msg = f"prompts have at most {LONGEST} characters here"
        raise InvalidRequest(msg, status=400)
    return request.replace(system=(*request.system, RULE))


async def after(request: Request, response: Response, info: Info) -> None:  # noqa: ARG001 - as above
    """Count the tokens that each key has used."""
    if response.usage is not None:
        tokens[info.key_name or "anybody"] += response.usage.total


async def main() -> None:
    """Try the hooks with a short and a long prompt."""
    info = Info(front="openai-chat", headers={}, model="auto", stream=False)
    for text in ("Is it safe?", "x" * (LONG + 1)):
        request = Request(messages=(Message.user(text),))
        changed = await before(request, info)
        system = " ".join(part.text for part in changed.system if isinstance(part, Text))
        print(f"{size(request)} characters: {route(request, info)}, system: {system}")


if __name__ == "__main__":
    asyncio.run(main())
