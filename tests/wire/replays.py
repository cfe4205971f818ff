"""Conversations in the corpus: how clients repeated a response in the next request.

Recordings of one `source` with successive `seq` are calls of one conversation, so the answer to one
call is in the history of the next, if the client replayed it faithfully. `python -m
tests.wire.replays` prints how many did, client by client, and what the others changed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import dragoman
from dragoman import DragomanError, Message, Role, Text, Thinking, ToolCall
from dragoman.model.parts import ServerToolCall, ServerToolResult
from tests.corpus import Corpus, CorpusNotFoundError, Recording
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY


@dataclass(frozen=True)
class Replay:
    """An answer, and the most similar message in the next request."""

    client: str
    file: str
    answer: Message
    history: tuple[Message, ...]

    @property
    def is_faithful(self) -> bool:
        """Whether the next request has the same answer; clients may rename calls.

        So do we if a wire has no ids: ids in a request are derived from positions.
        """
        return any(map(self.answer.equal_ignoring_call_ids, self.history))

    @property
    def change(self) -> str:
        """The client's change."""
        if self.is_faithful:
            return "nothing"
        for change, kinds in _CHANGES:
            if any(_without(self.answer, kinds) == _without(m, kinds) for m in self.history):
                return change
        return "rewritten or cut by the client"


# From the smallest change to the largest.
_CHANGES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("thinking left out or changed", (Thinking,)),
    ("the provider's own tools left out", (ServerToolCall, ServerToolResult)),
    (
        "thinking and the provider's own tools left out",
        (Thinking, ServerToolCall, ServerToolResult),
    ),
    ("only the calls sent back", (Thinking, Text, ServerToolCall, ServerToolResult)),
    ("only the text sent back", (Thinking, ToolCall, ServerToolCall, ServerToolResult)),
)


def _without(message: Message, kinds: tuple[type, ...]) -> list[object]:
    """The content without parts of these kinds; citations, media and ids are ignored."""
    told: list[object] = []
    for part in message.parts:
        if isinstance(part, kinds):
            continue
        if isinstance(part, Text):
            told.append("".join(part.text.split()))
        elif isinstance(part, ToolCall):
            told.append(part.replace(id="any"))
        elif isinstance(part, Thinking):
            told.append(part)
    return told


def replays(corpus: Corpus, dialect: str) -> Iterator[Replay]:
    """The answers of a dialect whose next request is recorded, and longer."""
    conversations: dict[str, dict[int, Recording]] = defaultdict(dict)
    for recording in corpus.select(provider_api=SPOKEN_BY[dialect], status=200, tier="extended"):
        is_chat = ENDPOINTS[dialect].search(recording.request_path.partition("?")[0])
        if recording.seq is not None and is_chat and isinstance(recording.request_body, dict):
            key = f"{recording.row.source} {recording.row.provider_api}"
            conversations[key][recording.seq] = recording
    for conversation in conversations.values():
        for number, recording in conversation.items():
            following = conversation.get(number + 1)
            replay = following and _replay(dialect, recording, following)
            if replay:
                yield replay


def _replay(dialect: str, recording: Recording, following: Recording) -> Replay | None:
    speaker = dragoman.dialect(dialect)
    try:
        answer = _answer(dialect, recording)
        before = speaker.decode_request(recording.request_body, path=recording.request_path)
        after = speaker.decode_request(following.request_body, path=following.request_path)
    except DragomanError:
        return None
    history = tuple(m for m in after.messages if m.role is Role.ASSISTANT)
    if answer is None or not history or len(after.messages) <= len(before.messages):
        return None
    client = recording.row.source.partition("/")[2].partition(":")[0]
    return Replay(client, recording.row.file, answer, history)


def _answer(dialect: str, recording: Recording) -> Message | None:
    speaker = dragoman.dialect(dialect)
    if isinstance(recording.response_body, dict):
        return speaker.decode_response(recording.response_body).message
    stream = getattr(speaker, "stream_decoder", None)
    if stream is None or recording.response_stream is None:
        return None
    decoder = stream()
    decoder.feed(recording.response_stream)
    decoder.close()
    message: Message = decoder.response.message
    return message


def main() -> None:
    """Print the rates."""
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError as reason:
        print(f"recorded conversations: skipped, {reason}")
        return
    print("recorded conversations: answers found unchanged in the next request")
    for dialect in dragoman.dialects():
        found = list(replays(corpus, dialect))
        faithful = sum(replay.is_faithful for replay in found)
        print(f"  {dialect}: {faithful} of {len(found)}")
        for client, total in Counter(replay.client for replay in found).most_common():
            kept = sum(r.is_faithful for r in found if r.client == client)
            print(f"    {client:40} {kept:3} of {total:3}")
        changes = Counter(r.change for r in found if not r.is_faithful)
        for change, count in changes.most_common():
            print(f"    the rest: {change}: {count}")


if __name__ == "__main__":
    main()
