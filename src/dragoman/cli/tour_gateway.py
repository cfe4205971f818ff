"""The gateway part of the tour: served until Ctrl-C on a terminal, a short demo elsewhere."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from importlib.util import find_spec
from shlex import quote
from typing import Any, NamedTuple

import click

from dragoman.cli.screen import harmless
from dragoman.cli.wrapping import say, styled

_PORT = 8421
_PROMPT = "Say hello in one short sentence."
_MAX_TOKENS = 24
_SECONDS = 60.0
_LISTENING = re.compile(r" listen(?:s|ing) on (\S+)")


class Asked(NamedTuple):
    """A demo request: its API, path and body."""

    front: str
    path: str
    body: dict[str, Any]


def _requests(model: str) -> tuple[Asked, ...]:
    """One request for each API of the gateway."""
    said = [{"role": "user", "content": _PROMPT}]
    plain = {"model": model, "messages": said}
    return (
        Asked("openai-chat", "/v1/chat/completions", plain),
        Asked("openai-responses", "/v1/responses", {"model": model, "input": _PROMPT}),
        Asked("anthropic", "/v1/messages", {**plain, "max_tokens": _MAX_TOKENS}),
        Asked("gemini", f"/v1beta/models/{model}:generateContent",
              {"contents": [{"role": "user", "parts": [{"text": _PROMPT}]}]}),
        Asked("ollama", "/api/chat", {**plain, "stream": False}),
    )  # fmt: skip


def has_gateway() -> bool:
    """Whether the gateway is installed; if not, prints what to install."""
    try:
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError:
        say("\nTo see the gateway: pip install 'dragoman[cli,gateway]'")
        return False
    return True


# --- demo


def show_fronts(model: str) -> None:
    """Start the gateway, send it one request of each API, and stop it."""
    say("\n--- the gateway: the same model through each API", "step")
    asyncio.run(_shown(model))


async def _shown(model: str) -> None:
    from dragoman.gateway.config.settings import (
        GatewayConfig,
        Hop,
        Place,
        RouteSettings,
        ServerSettings,
    )
    from dragoman.gateway.serving import Worker, bind

    place = Place(name="here", model_url=model)
    route = RouteSettings(model="*", to=(Hop(place=place),), fixed={"max_tokens": _MAX_TOKENS})
    server = ServerSettings(port=0, log="off", traffic="off")
    config = GatewayConfig(server=server, places={"here": place}, routes=(route,))
    listening, ready = bind("127.0.0.1", 0), asyncio.Event()
    worker = Worker(config)
    serving = asyncio.create_task(worker.serve([listening], ready.set))
    try:
        await ready.wait()
        await _asked(f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        worker.stop()
        await serving


async def _asked(url: str) -> None:
    import aiohttp

    from dragoman.wire.dialect import dialect

    limit = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=limit) as session:
        for asked in _requests("smollm2"):
            async with session.post(f"{url}{asked.path}", json=asked.body) as reply:
                body = await reply.read()
            text = dialect(asked.front).decode_response(body).message.text.strip()
            say(f"POST {asked.path} ({asked.front}): {harmless(_short(text))}")


def _short(text: str) -> str:
    first = text.partition("\n")[0]
    return first if len(first) <= 60 else f"{first[:57]}..."  # noqa: PLR2004 - a line's worth


# --- until Ctrl-C


def serve(model: str) -> None:
    """Serve the gateway and its page until Ctrl-C."""
    from dragoman.gateway.launching import Launch

    port = _PORT if _is_free(_PORT) else 0
    launch = Launch(None, {"host": "127.0.0.1", "port": port, "log": "off"})
    launch.run(lambda line: _say(line, model))


def _say(line: str, model: str) -> None:
    """Replace the server's startup line by one with examples for newcomers."""
    found = _LISTENING.search(line)
    if found is None:
        if line == "stopped":
            say("stopped")
        return
    url = found[1]
    say(f"\n--- the gateway is running until Ctrl-C; its web page is {url}/ui/", "step")
    say("It serves any model to any client. Try these commands in another terminal:\n")
    missing = [name for name in ("openai", "anthropic") if find_spec(name) is None]
    if missing:
        click.echo(f"{_python()} -m pip install {' '.join(missing)}  # for the last two\n")
    for command in commands(url, model):
        # Not wrapped: it is copied. Its own lines are short.
        click.echo(styled(command, "command") + "\n")


def commands(url: str, model: str) -> tuple[str, str, str]:
    """Returns commands that send a request: with curl, the openai SDK and the anthropic SDK."""
    body = f'{{"model": "{model}",\n "messages": [{{"role": "user", "content": "Hello"}}]}}'
    return (
        f"curl -s {url}/v1/chat/completions -d '\n{body}'",
        (
            f'{_python()} -c "\nfrom openai import OpenAI\n'
            f"client = OpenAI(base_url='{url}/v1', api_key='any')\n"
            f"print(client.responses.create(model='{model}', input='Hello').output_text)\""
        ),
        (
            f'{_python()} -c "\nfrom anthropic import Anthropic\n'
            f"client = Anthropic(base_url='{url}', api_key='any')\n"
            "hello = {'role': 'user', 'content': 'Hello'}\n"
            "said = client.messages.create(\n"
            f"    model='{model}', max_tokens=50, messages=[hello])\n"
            'print(said.content[0].text)"'
        ),
    )


def _python() -> str:
    """This interpreter: a terminal may have no `python`, or one without the packages."""
    return quote(sys.executable or "python3")


def _is_free(port: int) -> bool:
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) != 0
