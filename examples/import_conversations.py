"""Conversations from ChatGPT's, Claude's and LangChain's exports, stored and exported again.

    python examples/import_conversations.py   # three samples, in memory
    python examples/import_conversations.py conversations.json --store sqlite:///chats.db

Shows `Messages.from_any`, `from_langchain`, a history as their common home, and encoding it in any
dialect. The exports of ChatGPT and Claude are not documented; the readers take what they are
known to contain, and leave pictures, tools and other branches out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import dragoman
from dragoman import ChatHistory, Messages, Request, SessionIdentity
from dragoman.interop import from_langchain

CHATGPT = {
    "id": "chatgpt-1",
    "current_node": "c",
    "mapping": {
        "a": {"parent": None, "message": None},
        "b": {"parent": "a", "message": {"author": {"role": "user"}, "content": {"parts": ["Hi"]}}},
        "c": {
            "parent": "b",
            "message": {"author": {"role": "assistant"}, "content": {"parts": ["Hello!"]}},
        },
    },
}
CLAUDE = {
    "uuid": "claude-1",
    "chat_messages": [{"sender": "human", "text": "Hi"}, {"sender": "assistant", "text": "Hello!"}],
}
LANGCHAIN = [
    {"type": "human", "data": {"content": "Hi"}},
    {"type": "ai", "data": {"content": "Hello!"}},
]


def from_chatgpt(conversation: dict[str, Any]) -> Messages:
    """The branch that was last on the screen, its texts only."""
    nodes, place, turns = conversation["mapping"], conversation["current_node"], []
    while place is not None:
        if message := nodes[place]["message"]:
            texts = [part for part in message["content"].get("parts", []) if isinstance(part, str)]
            turns.append((message["author"]["role"], "\n".join(texts)))
        place = nodes[place]["parent"]
    known = {"system", "user", "assistant"}
    return Messages.from_any([turn for turn in reversed(turns) if turn[0] in known and turn[1]])


def from_claude(conversation: dict[str, Any]) -> Messages:
    """The texts of a conversation."""
    turns = conversation["chat_messages"]
    return Messages.from_any([(turn["sender"], turn["text"]) for turn in turns if turn["text"]])


def read(document: Any) -> list[tuple[str, Messages]]:
    """Names and messages of all conversations in an export."""
    if isinstance(document, dict) and "mapping" in document:
        return [(document["id"], from_chatgpt(document))]
    if isinstance(document, dict) and "chat_messages" in document:
        return [(document["uuid"], from_claude(document))]
    if document and "data" in document[0]:
        return [("langchain", from_langchain(document))]
    return [found for conversation in document for found in read(conversation)]


async def main() -> None:
    """Store each conversation, and print it in the form that was asked for."""
    parser = argparse.ArgumentParser(description="Import conversations, and export them.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--store", default="memory:", help="(default: %(default)s)")
    parser.add_argument("--to", default="anthropic", help="a dialect (default: %(default)s)")
    options = parser.parse_args()

    exports = [json.loads(file.read_text()) for file in options.files]
    for name, messages in read(exports or [CHATGPT, CLAUDE, LANGCHAIN]):
        session = SessionIdentity(agent="imported", chat=name)
        async with ChatHistory(session, storage=options.store) as history:
            if not await history.count():  # a second import adds nothing
                await history.extend(messages)
            request = Request(messages=tuple(await history.messages()))
        # repair=False: what was said, without what a next request would need besides.
        print(json.dumps(dragoman.dialect(options.to).encode_request(request, repair=False).body))


if __name__ == "__main__":
    asyncio.run(main())
