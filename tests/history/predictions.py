"""How well `count` predicts the prompt tokens of the next call of a recorded conversation.

Recordings of one `source` with successive `seq` are calls of one conversation. The answers up to
call n get the usage that their provider reported. `count` of the messages, tools and instructions
that call n+1 sent is then compared with the prompt tokens reported for it.
`python -m tests.history.predictions` prints the errors for both tiers, by dialect, by kind of
answer (with provider-run tools; followed by changed tools or instructions) and for two halves of
the sources: the rules were derived from one half and verified on the other.

Calls that can't be measured are left out and counted: for example, calls n+1 that report the sum of
several prompts, because the provider ran its own tools in that call.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any

import dragoman
from dragoman import DragomanError, Message, Request, Response, Role, Usage
from dragoman.history.tokens import Around, count
from dragoman.model.parts import Opaque, Part, ServerToolCall, ServerToolResult
from tests.corpus import Corpus, CorpusNotFoundError, Recording, Tier
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY

_OUT_OF_SIGHT = (ServerToolCall, ServerToolResult, Opaque)


@dataclass(frozen=True)
class Call:
    """A recorded call, decoded."""

    recording: Recording
    request: Request
    response: Response
    messages: tuple[Message, ...]
    """All that the model was given: with what the provider kept of the calls before."""

    @property
    def is_trimmed(self) -> bool:
        """Whether the recording lacks media that were counted."""
        return "media_trimmed" in self.recording.row.flags

    @property
    def prompt(self) -> int:
        """The reported prompt tokens; Gemini reports those added by its tools separately (W98)."""
        usage = self.response.usage or Usage()
        brought: int = usage.extras.get("gemini", {}).get("toolUsePromptTokenCount", 0)
        return usage.total_input - brought

    @property
    def around(self) -> Around:
        """What was sent besides the messages."""
        return Around(self.request.tools, self.request.system)

    @property
    def said(self) -> list[Part]:
        """The parts of the answer."""
        return [part for choice in self.response.choices for part in choice.message.parts]

    @property
    def has_hidden_rounds(self) -> bool:
        """Whether the provider also ran its own tools, or compacted the conversation."""
        return any(isinstance(part, _OUT_OF_SIGHT) for part in self.said)

    @property
    def sums_prompts(self) -> bool:
        """Whether the reported prompt tokens are a sum of several prompts, or of a compacted one.

        That is the case if the provider ran its own tools in this call (a result is in the answer,
        or the answer continues after the call) or compacted the conversation. Gemini is an
        exception if it reports tool tokens separately and its details add up to the rest.
        """
        details = (self.response.usage or Usage()).extras.get("gemini", {})
        if "toolUsePromptTokenCount" in details:
            counted = sum(each["tokenCount"] for each in details.get("promptTokensDetails", ()))
            return bool(counted != self.prompt)
        if any(isinstance(part, ServerToolResult) for part in self.said):
            return True
        aside = [isinstance(part, ServerToolCall | Opaque) for part in self.said]
        return any(call and not after for call, after in pairwise(aside))


@dataclass(frozen=True)
class Prediction:
    """The expected and the reported tokens of a call."""

    dialect: str
    tier: Tier
    kind: str
    source: str
    expected: int
    reported: int

    @property
    def half(self) -> str:
        """The half of the sources that it belongs to; the rules were derived from the first."""
        return "check" if sha256(self.source.encode()).digest()[0] % 2 else "develop"

    @property
    def error(self) -> float:
        """The relative error; negative if the prediction is too low."""
        return self.expected / self.reported - 1


@dataclass(frozen=True)
class Errors:
    """The three figures that have targets."""

    number: int
    median: float
    ninetieth: float
    too_low: float
    """The share of those more than 10 % too low."""

    @classmethod
    def of(cls, errors: Sequence[float]) -> Errors:
        """The figures of these relative errors; there must be some."""
        sizes = sorted(map(abs, errors))
        low = sum(error < -0.1 for error in errors) / len(errors)
        return cls(len(sizes), sizes[len(sizes) // 2], sizes[len(sizes) * 9 // 10], low)

    def __str__(self) -> str:
        figures = f"median {self.median:6.1%}  90th {self.ninetieth:7.1%}"
        return f"{self.number:4}  {figures}  too low {self.too_low:5.1%}"


def predictions(
    corpus: Corpus, left_out: Counter[str] | None = None, *, with_details: bool = True
) -> Iterator[Prediction]:
    """Every call that continues the recorded one before it; `left_out` counts the others.

    Without details, the usage of answers has only the counts that decoders store in a message.
    """
    reasons: Counter[str] = Counter() if left_out is None else left_out
    for dialect in dragoman.dialects():
        for conversation in _conversations(corpus, dialect):
            for number, before in conversation.items():
                after = conversation.get(number + 1)
                reason = _reason(before, after) if after else "the last of its conversation"
                if after is None or reason:
                    reasons[reason] += 1
                else:
                    earlier = [call for place, call in conversation.items() if place < number]
                    yield _prediction(dialect, (*earlier, before), after, with_details)


def _reason(before: Call, after: Call) -> str:
    """Why the pair can't be measured; empty if it can."""
    if before.is_trimmed or after.is_trimmed:
        return "media trimmed in the recording"
    if before.response.usage is None or after.prompt <= 0:
        return "no usage reported"
    if not _goes_on_from(before, after):
        return "another conversation"
    return "prompts of hosted rounds summed up in what is to be foretold" * after.sums_prompts


def _prediction(dialect: str, calls: Sequence[Call], after: Call, with_details: bool) -> Prediction:
    before = calls[-1]
    messages = list(after.messages)
    for call in (*(call for call in calls if _goes_on_from(call, before)), before):
        place, usage = len(call.messages), call.response.usage
        kept = usage if with_details else usage and usage.counts
        messages[place] = messages[place].replace(usage=kept)
    tools, system = after.around
    expected = count(messages, tools=tools, system=system, before=before.around).total
    row = after.recording.row
    return Prediction(dialect, row.tier, _kind(before, after), row.source, expected, after.prompt)


def _goes_on_from(earlier: Call, later: Call) -> bool:
    place = len(earlier.messages)
    if later.messages[:place] != earlier.messages or len(later.messages) <= place:
        return False
    return later.messages[place].role is Role.ASSISTANT


def _kind(before: Call, after: Call) -> str:
    if before.has_hidden_rounds:
        return "provider ran tools"
    had, has = before.request, after.request
    return "prompt changed" if (had.tools, had.system) != (has.tools, has.system) else "plain"


def _conversations(corpus: Corpus, dialect: str) -> Iterator[dict[int, Call]]:
    recordings: dict[str, dict[int, Recording]] = defaultdict(dict)
    for recording in corpus.select(provider_api=SPOKEN_BY[dialect], status=200, tier="extended"):
        is_chat = ENDPOINTS[dialect].search(recording.request_path.partition("?")[0])
        if recording.seq is not None and is_chat and isinstance(recording.request_body, dict):
            key = f"{recording.row.source} {recording.row.provider_api}"
            recordings[key][recording.seq] = recording
    for conversation in recordings.values():
        yield _calls(dialect, conversation)


def _calls(dialect: str, recordings: dict[int, Recording]) -> dict[int, Call]:
    calls: dict[int, Call] = {}
    kept: dict[str, tuple[Message, ...]] = {}
    for number, recording in sorted(recordings.items()):
        try:
            call = _call(dialect, recording, kept)
        except DragomanError:
            continue
        if call is not None:
            calls[number] = call
            if call.response.id and call.response.choices:
                kept[call.response.id] = (*call.messages, call.response.message)
    return calls


def _call(dialect: str, recording: Recording, kept: dict[str, tuple[Message, ...]]) -> Call | None:
    speaker = dragoman.dialect(dialect)
    request = speaker.decode_request(recording.request_body, path=recording.request_path)
    response = _response(speaker, recording)
    previous = request.state.previous_response_id if request.state else None
    messages = kept.get(previous or "", ()) + request.messages
    return Call(recording, request, response, messages) if response else None


def _response(speaker: Any, recording: Recording) -> Response | None:
    response: Response | None = None
    if isinstance(recording.response_body, dict):
        response = speaker.decode_response(recording.response_body)
    elif recording.response_stream is not None:
        decoder = speaker.stream_decoder()
        decoder.feed(recording.response_stream)
        decoder.close()
        response = decoder.response
    return response


def unanchored(corpus: Corpus) -> Iterator[Prediction]:
    """Every first call of a conversation, estimated without knowing any usage."""
    for dialect in dragoman.dialects():
        for conversation in _conversations(corpus, dialect):
            for call in list(conversation.values())[:1]:
                if call.prompt > 0 and not call.is_trimmed and not call.has_hidden_rounds:
                    request = call.request
                    made = count(call.messages, tools=request.tools, system=request.system)
                    tier = call.recording.row.tier
                    yield Prediction(dialect, tier, "plain", "", made.total, call.prompt)


def main() -> None:
    """Print the figures."""
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError as absent:
        _print(f"token predictions: skipped, {absent}")
        return
    left_out: Counter[str] = Counter()
    found = list(predictions(corpus, left_out))
    _print("the next call's prompt tokens, foretold from the usage of the one before")
    for tier in ("core", "extended"):
        chosen = [made for made in found if made.tier == "core" or tier == "extended"]
        _table(f"  tier {tier}", chosen, lambda made: made.dialect)
        _table("    of which", chosen, lambda made: made.kind)
        _table("    of which", chosen, lambda made: made.half)
    for reason, number in left_out.most_common():
        _print(f"  left out: {number:4} {reason}")
    _print("with the counts alone, as decoders put them into a message")
    _table("  by tier", list(predictions(corpus, with_details=False)), lambda made: made.tier)
    _print("without any usage (for information): first calls, estimated whole")
    _table("  both tiers", list(unanchored(corpus)), lambda made: made.dialect)


def _table(title: str, made: Sequence[Prediction], key: Callable[[Prediction], str]) -> None:
    groups: dict[str, list[float]] = defaultdict(list)
    for prediction in made:
        groups[key(prediction)].append(prediction.error)
        groups["~ all"].append(prediction.error)
    _print(title)
    for name, errors in sorted(groups.items()):
        _print(f"    {name:20} {Errors.of(errors)}")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
