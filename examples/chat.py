"""A chat in the terminal that remembers: run it again, and the conversation continues.

    python examples/chat.py                                      # echoes, needs no key
    python examples/chat.py --model anthropic:claude-sonnet-4-5  # needs ANTHROPIC_API_KEY

Shows a stored history, streaming, and blocking calls (no `async` anywhere).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from dragoman import Agent, ChatHistory, DragomanError, SessionIdentity


def lines() -> Iterator[str]:
    """The lines that the user types, until Ctrl-D."""
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            return
        if line:
            yield line


def main() -> None:
    """Answer each line."""
    parser = argparse.ArgumentParser(description="A chat that remembers.")
    parser.add_argument("--model", default="echo:", help="provider:model (default: %(default)s)")
    parser.add_argument("--store", default="sqlite:///chats.db", help="(default: %(default)s)")
    parser.add_argument("--chat", default="main", help="name of the chat (default: %(default)s)")
    options = parser.parse_args()

    session = SessionIdentity(agent="example-chat", chat=options.chat)
    agent = Agent(options.model, system="Answer in one or two sentences.")
    with agent, ChatHistory.open_sync(session, storage=options.store) as history:
        if len(history):
            print(f"({len(history)} messages so far; the last one: {history.last})")
        for line in lines():
            try:
                with agent.stream_sync(line, history=history) as stream:
                    for chunk in stream:
                        print(chunk.output, end="", flush=True)
                print()
            except DragomanError as error:  # the question is stored
                print(f"[{error}]", file=sys.stderr)


if __name__ == "__main__":
    main()
