"""A chat with a slow model, run as a separate program for tests of interrupts.

`python -m tests.cli.slow_chat SCRIPT.json [TOOLS…]`. At `[waits]` in an answer, the model blocks
for ever; the file `waiting` is created when it gets there, and `asked` when the chat asks for
approval.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from dragoman.cli.chat.chatting import hold
from dragoman.cli.chat.options import Options
from dragoman.cli.exit_codes import clean_ending
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event, PartDelta
from dragoman.transport.scripted import ScriptedModel
from dragoman.transport.synthetic_answers import PlayedStream

_STOP = "[waits]"


class SlowModel(ScriptedModel):
    """Streams everything before `[waits]`, then blocks for ever."""

    def stream(self, request: Any) -> PlayedStream:
        """Stream the next answer word by word."""
        told = super().stream(request)
        Path("asked").touch()

        async def source(_heard: MessageAccumulator) -> AsyncIterator[Event]:
            async for event in told:
                if isinstance(event, PartDelta) and _STOP in (event.text or ""):
                    Path("waiting").touch()  # noqa: ASYNC240 - nothing else goes on
                    await asyncio.sleep(600)
                yield event

        return PlayedStream(source)


def main(script: str, *tools: str) -> None:
    """Run the chat on a terminal."""
    with clean_ending():
        model = SlowModel.from_file(script)
        hold(Options(tools=tools, session="slow"), is_terminal=True, model=model)


if __name__ == "__main__":
    main(*sys.argv[1:])
