"""The state of a chat, stored with it so that `--continue` can restore it.

The model, the system prompt, the settings, the tools and the template are metadata of the first
message that used them, so that branches, exports and encrypted stores include them. An imported
history may contain anything, so what this user wrote is signed with a local key; code and remote
addresses without a valid signature are used only if the user agrees.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from dragoman.agent.prompt_templates import Template
from dragoman.cli.exit_codes import Ending
from dragoman.model.frozen import thaw
from dragoman.model.roles import Role

if TYPE_CHECKING:
    from dragoman.model.messages import Message

KEY = "dragoman.chat"
"""The entry in a message's metadata."""

_KEY_LENGTH = 32
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, kw_only=True)
class ChatState:
    """The model, system prompt, settings, tools and template of a chat, as the user named them."""

    model: str | None = None
    """A model name or an alias."""
    base_url: str | None = None
    """The base URL, if one was given with the model."""
    dialect: str | None = None
    system: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: tuple[str, ...] = ()
    """Sources of the tools: `FILE.py`, `module:name`, `builtin`."""
    template: Template | None = None
    is_ours: bool = field(default=False, compare=False)
    """Whether this user wrote it on this machine (the signature is valid)."""

    @property
    def is_here(self) -> bool:
        """Whether the model uses the provider's default address, or one on this machine."""
        try:
            return self.base_url is None or urlsplit(self.base_url).hostname in _LOOPBACK
        except ValueError:
            return False

    def to_metadata(self) -> dict[str, Any]:
        """As JSON, without the fields that are not set."""
        template = self.template
        fields: dict[str, Any] = {
            "model": self.model,
            "base_url": self.base_url,
            "dialect": self.dialect,
            "system": self.system,
            "settings": {name: msgspec.to_builtins(each) for name, each in self.settings.items()},
            "tools": [_placed(each) for each in self.tools],
            "template": None if template is None or template.prompt is None else {
                "name": template.name, "prompt": template.prompt, "values": {**template.defaults},
            },
        }  # fmt: skip
        said = {name: value for name, value in fields.items() if value}
        mark = _mark(said)
        return said if mark is None else {**said, "mark": mark}


def _placed(source: str) -> str:
    """The absolute path of a file: the chat may be continued from another directory."""
    return str(Path(source).expanduser().absolute()) if source.endswith(".py") else source


def state_of(messages: Iterable[Message]) -> ChatState:
    """The most recent state of a chat; unreadable fields count as not set."""
    for message in reversed([*messages]):
        if message.role is Role.USER and KEY in message.metadata:
            return _read(thaw(message.metadata[KEY]))
    return ChatState()


def _read(given: Any) -> ChatState:
    found: dict[str, Any] = given if isinstance(given, dict) else {}
    texts = {name: found.get(name) for name in ("model", "base_url", "dialect", "system")}
    tools: Any = found.get("tools")
    said = {name: value for name, value in found.items() if name != "mark"}
    mark = _mark(said)
    return ChatState(
        **{name: text for name, text in texts.items() if isinstance(text, str)},
        settings=_settings(found.get("settings")),
        tools=tuple(each for each in tools if isinstance(each, str))
        if isinstance(tools, list) else (),
        template=_template(found.get("template")),
        is_ours=mark is not None and _is_same(mark, found.get("mark")),
    )  # fmt: skip


def _is_same(mark: str, given: object) -> bool:
    return isinstance(given, str) and given.isascii() and hmac.compare_digest(mark, given)


# --- signature


def _mark(said: dict[str, Any]) -> str | None:
    """The signature of this user; None if there is no key and none can be created."""
    key = _key()
    if key is None:
        return None
    text = json.dumps(said, sort_keys=True, ensure_ascii=True).encode()
    return hmac.new(key, text, "sha256").hexdigest()


def _key() -> bytes | None:
    from dragoman.cli.atomic_files import write_private
    from dragoman.history.storage_urls import default_file

    path = default_file().with_name("chat-key")
    try:
        if not path.exists():
            write_private(path, secrets.token_hex(32))
        key = path.read_bytes()
    except (OSError, Ending):
        return None
    return key if len(key) >= _KEY_LENGTH else None


# --- reading fields


def _settings(given: Any) -> dict[str, Any]:
    from dragoman.cli.request_settings import known_setting, setting_value

    settings: dict[str, Any] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            settings[known_setting(name)] = setting_value(known_setting(name), text)
        except Ending:
            continue  # from another version
    return settings


def _template(given: Any) -> Template | None:
    match given:
        case {"name": str() as name, "prompt": str() as prompt, "values": dict() as values}:
            return Template(
                name=name, prompt=prompt,
                defaults={key: str(value) for key, value in values.items()},
            )  # fmt: skip
        case _:
            return None
