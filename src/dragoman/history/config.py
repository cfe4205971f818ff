"""`ChatHistoryConfig`: the settings of a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import Counter, Strategy
from dragoman.model.value import expect

Hook = Callable[..., Any]
"""Called with its values and the history; sync or async; may veto by raising an exception."""

_HOOKS = (
    "on_before_add",
    "on_after_add",
    "on_before_save",
    "on_after_save",
    "on_before_load",
    "on_after_load",
    "before_truncate",
    "after_truncate",
    "truncation_callback",
    "token_counter",
    "strategy",
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ChatHistoryConfig:
    """The settings of a `ChatHistory`.

    >>> ChatHistoryConfig().exceeds_context_window(59_001)
    True

    Hooks: `on_before_add(message, history)`, `on_after_add(message, history)`,
    `on_before_save(history)`, `on_after_save(history)`, `on_before_load(history)`,
    `on_after_load(history)`, `before_truncate(messages, history)` with the messages before
    truncation, `after_truncate(messages, history)` with those after it. A hook that raises before
    an operation prevents it; one that raises afterwards does not undo it.
    """

    context_window: int = 60_000
    """Size of the context window in tokens, prompt and response together."""
    reserved_for_completion: int = 1_000
    """Tokens of the context window to keep free for the response."""
    store_meta: bool = True
    """Whether to store the messages' `metadata`; usage is always stored."""
    accept_damaged: bool = False
    """Whether an encrypted session is opened although messages in it were altered or removed
    without its keys. What is intact is loaded; `ChatHistory.damaged` lists the rest."""
    autosave: bool = True
    """Whether changes are written immediately, or only by `save`."""
    delete_truncated: bool = False
    """Whether `save` deletes stored messages that no longer fit the window."""
    strategy: Strategy | None = None
    """How to truncate; `None` uses `FitWindow`. See `dragoman.history.truncation`."""
    truncation_callback: Hook | None = None
    """Replaces the strategy: takes `(messages, tokens, config)`, returns the messages to keep."""
    token_counter: Counter | None = None
    """Counts the tokens of messages, such as with a provider's API, instead of estimating them."""
    on_before_add: Hook | None = None
    on_after_add: Hook | None = None
    on_before_save: Hook | None = None
    on_after_save: Hook | None = None
    on_before_load: Hook | None = None
    on_after_load: Hook | None = None
    before_truncate: Hook | None = None
    after_truncate: Hook | None = None

    def __post_init__(self) -> None:
        for name in ("context_window", "reserved_for_completion"):
            number = getattr(self, name)
            if type(number) is not int or number < 0:
                msg = f"ChatHistoryConfig.{name} must be an integer of at least 0"
                raise InvalidInputError(msg)
        for name in ("store_meta", "accept_damaged", "autosave", "delete_truncated"):
            expect(getattr(self, name), bool, f"ChatHistoryConfig.{name}")
        # All of it may be reserved; then nothing fits.
        if self.reserved_for_completion > self.context_window:
            msg = "ChatHistoryConfig.reserved_for_completion must not exceed the context_window"
            raise InvalidInputError(msg)
        for name in _HOOKS:
            hook = getattr(self, name)
            if hook is not None and not callable(hook):
                msg = f"ChatHistoryConfig.{name} must be callable, not {type(hook).__name__}"
                raise InvalidInputError(msg)
        if self.strategy is not None and self.truncation_callback is not None:
            msg = "ChatHistoryConfig takes a strategy or a truncation_callback, not both"
            raise InvalidInputError(msg)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Creates a config from a dict of settings; the others keep their defaults."""
        expect(settings, Mapping, "the settings of a chat history")
        known = {field.name for field in fields(cls)}
        unknown = sum(1 for key in settings if key not in known)
        if unknown:
            msg = f"{unknown} unknown settings; known settings are {', '.join(sorted(known))}"
            raise InvalidInputError(msg)
        return cls(**settings)

    @classmethod
    def of(cls, config: ChatHistoryConfig | Mapping[str, Any] | None) -> ChatHistoryConfig:
        """Returns a config unchanged; converts a dict; `None` gives the default config."""
        if isinstance(config, Mapping):
            return cls.from_dict(config)
        expect(config, (ChatHistoryConfig, type(None)), "the config of a chat history")
        return cls() if config is None else config

    @property
    def limit(self) -> int:
        """Maximum number of tokens in a prompt."""
        return self.context_window - self.reserved_for_completion

    def exceeds_context_window(self, tokens: int) -> bool:
        """Whether this many tokens leave too little room for the response."""
        expect(tokens, (int, float), "a number of tokens")
        return tokens > self.limit

    def __repr__(self) -> str:
        # Without hooks and strategy: the repr of a partial, for example, shows its arguments.
        given = [name for name in _HOOKS if getattr(self, name) is not None]
        return f"ChatHistoryConfig({', '.join([f'{self.limit} tokens', *given])})"
