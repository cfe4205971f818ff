"""A chat with a model that takes its time, as a program of its own: for tests of interrupts.

`python -m tests.cli.slow_chat SCRIPT.json [TOOLS…]`; where an answer says `[waits]`, what follows
never comes, and a file `waiting` says that it has come so far. `asked` says
that there was a question.
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
    """Waits for ever where the script says `[waits]`, having said all that comes before."""

    def stream(self, request: Any) -> PlayedStream:
        """The next answer, word by word."""
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
    """Chat on a terminal."""
    with clean_ending():
        model = SlowModel.from_file(script)
        hold(Options(tools=tools, session="slow"), is_terminal=True, model=model)


if __name__ == "__main__":
    main(*sys.argv[1:])
