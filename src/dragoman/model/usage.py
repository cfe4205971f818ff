"""Token usage and finish reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Never

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.value import Value, expect_fields, own_mapping


class FinishReason(StrEnum):
    """Why the model stopped. The provider's own value is in `Choice.finish_raw`."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    PAUSE = "pause"
    CONTEXT_FULL = "context_full"
    MALFORMED_CALL = "malformed_call"
    CANCELLED = "cancelled"
    ERROR = "error"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> Never:
        msg = f"unknown finish reason of type {type(value).__name__}"  # enum's own quotes it
        raise InvalidInputError(msg)

    @property
    def is_cut_off(self) -> bool:
        """Whether the response was cut off: its tool calls must not be run (I7)."""
        return self in _CUT_OFF


_CUT_OFF = frozenset({
    FinishReason.LENGTH, FinishReason.CONTEXT_FULL, FinishReason.MALFORMED_CALL,
    FinishReason.CONTENT_FILTER, FinishReason.REFUSAL, FinishReason.CANCELLED, FinishReason.ERROR,
})  # fmt: skip


_WHOLE = {int}
_SEPARATE_INPUT = ("compaction_input", "compaction_cache_read", "compaction_cache_write",
                   "other_models")  # fmt: skip
_SEPARATE_OUTPUT = ("compaction_output",)
_NUMBERS = {bool, int, float}


class Usage(Value, frozen=True):
    """Token counts in buckets that don't overlap, so that they can be added up.

    Providers count differently: prompt tokens include cached tokens in OpenAI and Gemini, but not
    in Anthropic (W19, W68, W98). Here every token is in exactly one bucket.
    """

    input: int = 0
    """Prompt tokens neither read from nor written to a cache."""
    output: int = 0
    """Output tokens, without thinking."""
    cache_read: int = 0
    """Prompt tokens read from the provider's cache."""
    cache_write: int = 0
    """Prompt tokens written to the provider's cache."""
    thinking: int = 0
    """Thinking tokens."""
    reported_total: int | None = None
    """The total reported by the provider, or `None`."""
    extras: Mapping[str, Any] = EMPTY
    details: Mapping[str, int] = EMPTY
    """A breakdown of the buckets, where the provider reports it: `input_audio`, `output_image`,
    `cache_write_1h`, `accepted_prediction`, `tool_input`, … Tokens billed besides the buckets are
    here, too: `compaction_input`, `compaction_output`, `other_models` (Anthropic)."""

    def __post_init__(self) -> None:
        counts = (self.input, self.output, self.cache_read, self.cache_write, self.thinking)
        if set(map(type, counts)) != _WHOLE:
            names = ("input", "output", "cache_read", "cache_write", "thinking")
            wrong = next(name for name in names if type(getattr(self, name)) is not int)
            msg = f"Usage.{wrong} must be an integer"
            raise InvalidInputError(msg)
        if self.reported_total is not None and type(self.reported_total) is not int:
            expect_fields(self, reported_total=int)
        if self.extras is not EMPTY:
            own_mapping(self, "extras")
        if self.details is not EMPTY:
            own_mapping(self, "details")
            if not _WHOLE.issuperset(map(type, self.details.values())):
                msg = "the values of Usage.details must be integers"
                raise InvalidInputError(msg)

    @property
    def counts(self) -> Usage:
        """The usage with only the numbers of its extras: what a message keeps."""
        if not self.extras:
            return self
        kept = (self.input, self.output, self.cache_read, self.cache_write, self.thinking)
        return Usage(*kept, self.reported_total, _numbers(self.extras), self.details)

    @property
    def total_input(self) -> int:
        """All prompt tokens, as OpenAI and Gemini count them."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total_output(self) -> int:
        """All output tokens, thinking included, as OpenAI and Anthropic count them."""
        return self.output + self.thinking

    @property
    def total(self) -> int:
        """The total reported by the provider, or otherwise the sum of the buckets."""
        if self.reported_total is not None:
            return self.reported_total
        return self.total_input + self.total_output

    @property
    def separate_input(self) -> int:
        """Input tokens billed besides the buckets, and all tokens of other models (Anthropic)."""
        details = self.details
        return sum(details.get(name, 0) for name in _SEPARATE_INPUT) if details else 0

    @property
    def separate_output(self) -> int:
        """Output tokens billed besides the buckets (Anthropic)."""
        details = self.details
        return sum(details.get(name, 0) for name in _SEPARATE_OUTPUT) if details else 0

    @property
    def billed(self) -> int:
        """All tokens that are billed: the total, and those besides it."""
        return self.total + self.separate_input + self.separate_output

    def __add__(self, other: Usage) -> Usage:
        """Adds up two usages. Extras are dropped."""
        if not isinstance(other, Usage):
            return NotImplemented
        reported = None
        if self.reported_total is not None or other.reported_total is not None:
            reported = self.total + other.total
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            thinking=self.thinking + other.thinking,
            reported_total=reported,
            details=_sum(self.details, other.details),
        )

    def _compared_fields(self) -> tuple[Any, ...]:
        return (
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.thinking,
            self.total,
        )

    def _sizes(self) -> Iterator[str]:
        yield f"{self.total_input} in"
        yield f"{self.total_output} out"


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    if not one or not other:
        return one or other
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _numbers(extras: Mapping[str, Any]) -> Mapping[str, Any]:
    """The numbers in a provider's extras: counts and costs."""
    found: dict[str, Any] = {}
    for dialect, fields in extras.items():
        if isinstance(fields, Mapping):
            numbers = {key: kept for key, value in fields.items() if (kept := _number(value))}
            if numbers:
                found[dialect] = numbers
    return found or EMPTY


def _number(value: Any) -> Any:
    """A number, or the non-zero numbers of an object."""
    if isinstance(value, Mapping):
        return {key: each for key, each in value.items() if type(each) in _NUMBERS and each}
    return value if type(value) in _NUMBERS else None
