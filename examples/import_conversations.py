"""Imports conversations exported from ChatGPT, Claude and LangChain, and prints them.

    python examples/import_conversations.py   # three samples, in memory
    python examples/import_conversations.py conversations.json --store sqlite:///chats.db

Shows `from_chat_export`, `from_langchain`, `import_messages` (which keeps times and branches), and
how to encode a stored conversation. `dragoman history import` imports such files without code.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import dragoman
from dragoman import ChatHistory, Messages, Request, SessionIdentity
from dragoman.history import import_messages, open_storage
from dragoman.interop import ChatBranch, from_chat_export, from_langchain

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


def read(document: Any) -> list[tuple[str, Messages, tuple[ChatBranch, ...]]]:
    """The id, the messages and the other branches of all conversations in an export."""
    if isinstance(document, dict):
        export = from_chat_export(document)
        return [(export.id or "unnamed", export.messages, export.branches)]
    if document and "data" in document[0]:  # LangChain's messages_to_dict
        return [("langchain", from_langchain(document), ())]
    return [found for conversation in document for found in read(conversation)]


async def main() -> None:
    """Store each conversation, and print it in the requested dialect."""
    parser = argparse.ArgumentParser(description="Import conversations, and export them.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--store", default="memory:", help="(default: %(default)s)")
    parser.add_argument("--to", default="anthropic", help="a dialect (default: %(default)s)")
    options = parser.parse_args()

    exports = [json.loads(file.read_text()) for file in options.files]
    async with open_storage(options.store) as storage:
        for name, messages, branches in read(exports or [CHATGPT, CLAUDE, LANGCHAIN]):
            session = SessionIdentity(agent="imported", chat=name)
            await import_messages(storage, session, messages, branches=branches, on_conflict="skip")
            async with ChatHistory(session, storage) as history:
                request = Request(messages=tuple(await history.messages()))
            # repair=False: the conversation as it is, without what a valid request would need.
            encoded = dragoman.dialect(options.to).encode_request(request, repair=False)
            print(json.dumps(encoded.body))


if __name__ == "__main__":
    asyncio.run(main())
