"""Copies one side of the lens as JSON, a curl command or Python code."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dragoman.errors import ConfigError, InvalidRequest
from dragoman.gateway.page.calls import PageCall, field
from dragoman.gateway.page.lens import Side, compare, within
from dragoman.providers.official_sdks import SDKS, VENDORS, Sdk
from dragoman.providers.provider import Provider
from dragoman.providers.registry import provider, providers

_FORMS = ("json", "curl", "python")


async def snippet(call: PageCall) -> Any:
    """Returns one side of the lens in the requested form."""
    asked = await call.json()
    form, side = field(asked, "form", str, "json"), field(asked, "side", str, "left")
    if form not in _FORMS or side not in {"left", "right"}:
        msg = "`form` must be json, curl or python, and `side` left or right"
        raise InvalidRequest(msg, status=400)
    looked = await compare(call, asked)
    chosen = looked.left if side == "left" else looked.right
    return {"text": await within(lambda: text_of(chosen, form))}


def text_of(side: Side, form: str) -> str:
    """Returns a side of the lens as JSON, curl or Python."""
    if form == "json" or side.is_response:
        return _json(side.encoded.body)
    place = _place(side)
    return _curl(side, place) if form == "curl" else _python(side, place)


def _json(body: Any) -> str:
    # Lone surrogates can't be encoded as UTF-8; JSON escapes can represent them.
    text = json.dumps(body, indent=2, ensure_ascii=False)
    return text if text.isascii() or _is_encodable(text) else json.dumps(body, indent=2)


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _place(side: Side) -> Provider | None:
    """Returns the provider whose URL and key to use: the target's, or the dialect's vendor."""
    named = None if side.facts is None else side.facts.provider
    name = named or VENDORS.get(side.dialect.name)
    known = {each.name for each in providers()}
    return None if name is None or name not in known else provider(name)


def _url(side: Side, place: Provider | None) -> str:
    """Returns the full URL; unknown parameters stay as placeholders in braces."""
    kind, name = ("stream" if side.stream else "generate"), side.dialect.name
    if place is not None:
        wanted = {each: f"{{{each}}}" for each in place.parameters if each not in place.defaults}
        base = place.base_url or "https://YOUR-HOST"
        try:
            url = place.url(kind, model=side.model or "MODEL", dialect=name, base_url=base,
                            parameters=wanted)  # fmt: skip
        except ConfigError:
            pass
        else:
            return url.replace("%7B", "{").replace("%7D", "}")
    return f"https://YOUR-HOST{side.encoded.path or ''}"


def _headers(side: Side, place: Provider | None) -> dict[str, str]:
    found = {"Content-Type": "application/json"}
    if place is not None:
        found |= dict(place.headers)
    return found | dict(side.encoded.headers)


def _key(place: Provider | None) -> tuple[str, str, str] | None:
    """Returns the key's header, its scheme prefix, and the environment variable of the key."""
    if place is None or place.auth is None:
        return None
    name = place.keys[0] if place.keys else f"{_word(place.name)}_API_KEY"
    scheme = "" if place.auth.scheme is None else f"{place.auth.scheme} "
    return place.auth.header, scheme, name


def _word(name: str) -> str:
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in name).upper()


# --- curl


def _curl(side: Side, place: Provider | None) -> str:
    lines = [f"curl {shlex.quote(_url(side, place))}"]
    lines += [f"  -H {shlex.quote(f'{name}: {value}')}"
              for name, value in _headers(side, place).items()]  # fmt: skip
    key = _key(place)
    if key is not None:  # in double quotes, so that the shell expands the variable
        header, scheme, variable = key
        lines.append(f'  -H "{header}: {scheme}${variable}"')
    if side.stream:
        lines.append("  --no-buffer")
    # Escaped, so that the shell receives plain ASCII.
    body = json.dumps(side.encoded.body, ensure_ascii=True, indent=2)
    # `--data-raw`, because other options would read a body that begins with @ as a file name.
    lines.append(f"  --data-raw {shlex.quote(body)}")
    return " \\\n".join(lines)


# --- Python


def _python(side: Side, place: Provider | None) -> str:
    sdk = SDKS.get(side.dialect.name)
    if sdk is not None and place is not None and place.base_url and "{" not in place.base_url:
        return _of_sdk(side, place, sdk)
    return _of_ours(side)


def _of_sdk(side: Side, place: Provider, sdk: Sdk) -> str:
    module, kind, method = sdk
    key, body = _key(place), dict(side.encoded.body)
    given = [f"base_url={place.base_url!a}"]
    if key is not None:
        given.append(f"api_key=os.environ[{key[2]!a}]")
    lines = ["import os", "", f"from {module} import {kind}", "",
             f"client = {kind}({', '.join(given)})"]  # fmt: skip
    model, stream = body.pop("model", side.model), body.pop("stream", None)
    lines += [f"body = {_literal(body)}"]
    # Fields that the SDK has no parameter for go into `extra_body`, so that it accepts them.
    needed = {name: body[name] for name in ("messages", "max_tokens", "input") if name in body}
    passed = [f"model={model or 'MODEL'!a}"]
    passed += [f"{name}=body.pop({name!a})" for name in needed]
    passed += [] if stream is None else [f"stream={bool(stream)}"]
    lines += [f"answer = client.{method}({', '.join(passed)}, extra_body=body)"]
    lines += ["for event in answer:", "    print(event)"] if stream else ["print(answer)"]
    return "\n".join(lines) + "\n"


def _of_ours(side: Side) -> str:
    target = side.facts.provider if side.facts is not None else None
    name = f"{target or VENDORS.get(side.dialect.name, side.dialect.name)}:{side.model or 'MODEL'}"
    lines = [
        "import asyncio", "", "import dragoman", "",
        f"body = {_literal(side.encoded.body)}",
        "",
        "",
        "async def main():",
        f"    request = dragoman.dialect({side.dialect.name!a}).decode_request(body)",
        f"    async with dragoman.open_model({name!a}) as model:",
        "        answer = await model.send(request)",
        "    print(answer.message.text)",
        "",
        "",
        "asyncio.run(main())",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _literal(value: Any, indent: str = "") -> str:
    """Returns a JSON value as a multi-line Python literal in plain ASCII."""
    inner = f"{indent}    "
    if isinstance(value, Mapping) and value:
        items = [f"{inner}{key!a}: {_literal(each, inner)}," for key, each in value.items()]
        return "\n".join(["{", *items, f"{indent}}}"])
    if isinstance(value, (list, tuple)) and value:
        items = [f"{inner}{_literal(each, inner)}," for each in value]
        return "\n".join(["[", *items, f"{indent}]"])
    if isinstance(value, (Mapping, list, tuple)):
        return "{}" if isinstance(value, Mapping) else "[]"
    return ascii(value)
