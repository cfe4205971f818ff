"""The prompt library: the templates of `dragoman templates`, listed, filled in, changed.

What is written here can't name tools or addresses, which the terminal would run or send keys to. A
file that holds more than the page shows is changed in the terminal only, so that nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from dragoman.agent.prompt_templates import (
    Template,
    template_from,
    template_names,
    template_path,
    template_text,
    write_template,
)
from dragoman.errors import (
    ConfigError,
    Conflict,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    NotFound,
    ServerError,
)
from dragoman.gateway.page.calls import PageCall, field

_T = TypeVar("_T")
_MAX_PROMPTS = 500
_MAX_BYTES = 1_000_000
_MAX_TEXT = 100_000  # characters of a prompt or a system prompt
_MAX_MODEL = 256
_MAX_INPUT = 1_000_000
_MAX_SHOWN = 200
_SETTINGS = ("temperature", "max_tokens", "thinking")
"""Those that the page has; the terminal has more."""
_NO_LIBRARY = "there is no prompt library: set `prompts` in the table [server] to a folder"
_NO_PROMPT = "there is no prompt of this name"
_CHANGED = "the prompt was changed or deleted meanwhile; open it again"
_TAKEN = "there is a prompt of this name; open it to change it"
_TOO_MANY = f"there can be up to {_MAX_PROMPTS} prompts"
_TOO_LONG = f"prompts and system prompts are limited to {_MAX_TEXT:,} characters"
_TOO_LARGE = "the file of the prompt is too large"
_EMPTY = "a prompt needs a text or a system prompt"
_MORE_THAN_SHOWN = (
    "the file holds more than the page shows: change it with `dragoman templates edit`"
)
_FILES = "the folder of the prompts can't be read or written"


async def listed(call: PageCall) -> Any:
    """Returns the prompts by name, with the beginning of each."""
    return {"prompts": await _on_disk(_briefs, _folder(call))}


async def opened(call: PageCall) -> Any:
    """Returns one prompt."""
    return await _on_disk(_opened, _folder(call), call.names["name"])


async def written(call: PageCall) -> Any:
    """Creates a prompt, or changes the `version` that was opened."""
    body = await call.json()
    texts = {name: field(body, name, str, "") for name in ("system", "prompt", "model")}
    version = field(body, "version", str, "")
    if max(len(texts["system"]), len(texts["prompt"])) > _MAX_TEXT:
        raise InvalidRequest(_TOO_LONG, status=413)
    if not texts["system"].strip() and not texts["prompt"].strip():
        raise InvalidRequest(_EMPTY, status=400)
    if len(texts["model"]) > _MAX_MODEL or not texts["model"].isprintable():
        msg = f"`model` must be a model name of up to {_MAX_MODEL} characters"
        raise InvalidRequest(msg, status=400)
    return await _on_disk(_written, _folder(call), call.names["name"], texts, version)


async def deleted(call: PageCall) -> Any:
    """Deletes the version of a prompt that was opened."""
    folder, version = _folder(call), call.query.get("version", "")
    return await _on_disk(_deleted, folder, call.names["name"], version)


async def filled(call: PageCall) -> Any:
    """Returns the texts of a prompt with values for its variables, and what the page can set."""
    body = await call.json()
    given, text = field(body, "values", dict, {}), field(body, "input", str, "")
    values = {name: value for name, value in given.items() if isinstance(value, str)}
    if len(text) + sum(map(len, values.values())) > _MAX_INPUT:
        msg = f"the values are limited to {_MAX_INPUT:,} characters"
        raise InvalidRequest(msg, status=413)
    return await _on_disk(_filled, _folder(call), call.names["name"], values, text)


def _folder(call: PageCall) -> Path:
    folder = call.page.prompts
    if folder is None:
        raise InvalidRequest(_NO_LIBRARY, status=409)
    return folder


async def _on_disk(work: Callable[..., _T], *given: Any) -> _T:
    try:
        return await asyncio.to_thread(work, *given)
    except ConfigError as error:  # an invalid name, or a value that is missing
        raise InvalidRequest(str(error), status=400) from None
    except OSError:
        raise ServerError(_FILES, status=500) from None


# --- on disk


def _read(folder: Path, name: str) -> bytes:
    path = template_path(name, folder)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(_NO_PROMPT) from None
    if len(content) > _MAX_BYTES:
        raise InvalidInputError(_TOO_LARGE)
    return content


def _version(content: bytes) -> str:
    return sha256(content).hexdigest()


def _briefs(folder: Path) -> list[dict[str, Any]]:
    return [_brief(folder, name) for name in template_names(folder)[:_MAX_PROMPTS]]


def _brief(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = template_from(name, _read(folder, name))
    except (DragomanError, OSError) as error:
        problem = str(error) if isinstance(error, DragomanError) else _FILES
        return {"name": name, "problem": problem}
    said = " ".join(f"{found.prompt or ''} {found.system or ''}".split())
    return {"name": name, "text": said[:_MAX_SHOWN], "variables": found.missing}


def _opened(folder: Path, name: str) -> dict[str, Any]:
    content = _read(folder, name)
    found = template_from(name, content)
    return {
        "name": name,
        "system": found.system or "",
        "prompt": found.prompt or "",
        "model": found.model or "",
        "variables": found.missing,
        "version": _version(content),
        "is_editable": _is_editable(found, content),
    }


def _is_editable(found: Template, content: bytes) -> bool:
    """Whether writing it again loses nothing: no comment, and nothing that the page can't show."""
    if found.tools or found.schema is not None or found.base_url is not None:
        return False
    try:
        return template_text(found).encode() == content
    except (TypeError, ValueError):  # TOML has values that JSON has not, such as dates
        return False


def _written(folder: Path, name: str, texts: dict[str, str], version: str) -> dict[str, Any]:
    path = template_path(name, folder)
    old = Template(name=name)
    if path.exists() or version:
        old = _unchanged(folder, name, version)
    elif len(template_names(folder)) >= _MAX_PROMPTS:
        raise InvalidRequest(_TOO_MANY, status=400)
    made = Template(
        name=name, defaults=old.defaults, settings=old.settings,
        model=texts["model"] or None, system=texts["system"] or None,
        prompt=texts["prompt"] or None,
    )  # fmt: skip
    write_template(name, template_text(made), folder)
    return _opened(folder, name)


def _unchanged(folder: Path, name: str, version: str) -> Template:
    """Returns the template if it is the version that the page showed, in full."""
    if not version:
        raise Conflict(_TAKEN)
    try:
        content = _read(folder, name)
    except NotFound:
        raise Conflict(_CHANGED) from None
    if _version(content) != version:
        raise Conflict(_CHANGED)
    found = template_from(name, content)
    if not _is_editable(found, content):
        raise InvalidRequest(_MORE_THAN_SHOWN, status=409)
    return found


def _deleted(folder: Path, name: str, version: str) -> dict[str, Any]:
    if _version(_read(folder, name)) != version:
        raise Conflict(_CHANGED)
    template_path(name, folder).unlink()
    return {}


def _filled(folder: Path, name: str, values: dict[str, str], text: str) -> dict[str, Any]:
    found = template_from(name, _read(folder, name))
    made = found.with_values(values)
    unused = [each for each in ("base_url", "tools", "schema") if getattr(found, each)]
    unused += [each for each in found.settings if each not in _SETTINGS]
    return {
        "text": made.filled(text),
        "system": made.system or "",
        "model": made.model or "",
        "settings": {name: found.settings[name] for name in _SETTINGS if _is_plain(found, name)},
        "unused": unused,
    }


def _is_plain(found: Template, name: str) -> bool:
    """Whether a setting is there, and a number or a word: the file is not trusted."""
    value = found.settings.get(name)
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, (bool, int)) or (isinstance(value, str) and len(value) < _MAX_SHOWN)
