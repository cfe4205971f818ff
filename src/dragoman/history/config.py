"""How a chat history behaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import Counter, Strategy
from dragoman.model.value import expect

Hook = Callable[..., Any]
"""Called with the values it is about and the history; sync or async; may veto with an exception."""

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
    `on_after_load(history)`, `before_truncate(messages, history)` with what would be sent or
    kept so far, `after_truncate(messages, history)` with what is now. One that raises before the
    fact prevents it; one that raises after it does not undo it.
    """

    context_window: int = 60_000
    """Tokens that the model takes, question and answer together."""
    reserved_for_completion: int = 1_000
    """Tokens of it that are kept free for the answer."""
    store_meta: bool = True
    """Whether the developer's metadata is stored; usage always is."""
    autosave: bool = True
    """Whether `add` returns when the message is durable, or `save` writes it later."""
    delete_truncated: bool = False
    """Whether `save` removes from the store what no longer fits the window."""
    strategy: Strategy | None = None
    """What is cut, and how; None fits the window. See `dragoman.history.truncation`."""
    truncation_callback: Hook | None = None
    """`(messages, tokens, config)` → the messages to keep, in place of a strategy."""
    token_counter: Counter | None = None
    """Messages → tokens: a provider's own counting call in place of the estimate."""
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
                msg = f"ChatHistoryConfig.{name} must be a number of tokens"
                raise InvalidInputError(msg)
        for name in ("store_meta", "autosave", "delete_truncated"):
            expect(getattr(self, name), bool, f"ChatHistoryConfig.{name}")
        # All of it may be reserved, and then nothing fits.
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
        """The config that these settings describe, the rest by default."""
        expect(settings, Mapping, "the settings of a chat history")
        known = {field.name for field in fields(cls)}
        unknown = sum(1 for key in settings if key not in known)
        if unknown:
            msg = f"{unknown} unknown settings; a chat history has {', '.join(sorted(known))}"
            raise InvalidInputError(msg)
        return cls(**settings)

    @classmethod
    def of(cls, config: ChatHistoryConfig | Mapping[str, Any] | None) -> ChatHistoryConfig:
        """The config as people give it: itself, its settings as a dict, or None for the default."""
        if isinstance(config, Mapping):
            return cls.from_dict(config)
        expect(config, (ChatHistoryConfig, type(None)), "the config of a chat history")
        return cls() if config is None else config

    @property
    def limit(self) -> int:
        """Tokens that may be sent."""
        return self.context_window - self.reserved_for_completion

    def exceeds_context_window(self, tokens: int) -> bool:
        """Whether that many tokens leave too little room for the answer."""
        expect(tokens, (int, float), "a number of tokens")
        return tokens > self.limit

    def __repr__(self) -> str:
        # Without the hooks and the strategy: a partial, for one, shows its arguments.
        given = [name for name in _HOOKS if getattr(self, name) is not None]
        return f"ChatHistoryConfig({', '.join([f'{self.limit} tokens', *given])})"
