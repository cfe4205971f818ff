"""Prints answers: the text on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO

import click

from dragoman.cli.ask_options import Options
from dragoman.cli.exit_codes import BROKEN, PROVIDER, Ending, complain
from dragoman.cli.screen import harmless, harmless_stream
from dragoman.cli.spinner import waiting

if TYPE_CHECKING:
    from dragoman.model.events import Event
    from dragoman.model.requests import Output, Request
    from dragoman.model.responses import Response
    from dragoman.transport.model import OpenedModel

UNKNOWN: Any = object()
"""Marks an answer that is not valid JSON."""


class Printer:
    """Prints an answer in the form that the options select."""

    def __init__(self, options: Options, stdout: TextIO) -> None:
        self._options = options
        self._is_seen = stdout.isatty()
        self._is_document = options.as_json
        self._kinds: dict[int, str] = {}
        self._visible = {False: harmless_stream(), True: harmless_stream()}
        self._open: dict[bool, bool] = {}  # by stream: whether a line is unfinished

    @property
    def streams(self) -> bool:
        """Whether to stream the answer."""
        if self._options.extract:
            return False
        if self._options.stream is not None:
            return self._options.stream
        return self._is_seen and not self._is_document and not self._options.has_schema

    # --- streaming

    def hear(self, event: Event) -> None:
        """Print the text that an event adds."""
        from dragoman.model.events import PartDelta, PartStart

        if not isinstance(event, (PartStart, PartDelta)) or event.choice:
            return
        if isinstance(event, PartDelta):
            self.say(self._kinds.get(event.index, "text"), event.text)
        else:
            kind = type(event.part).__name__.lower()
            self._kinds[event.index] = kind
            self.say(kind, getattr(event.part, "text", None))

    def say(self, kind: str, text: str | None) -> None:
        """Print more of the answer's text or of the model's thinking."""
        if not text:
            return
        if kind == "thinking":
            self._think(text)
        elif kind in {"text", "refusal"} and not self._is_document:
            self._end_line(err=True)
            self._write(self._visible[False].feed(text) if self._is_seen else text)

    def _think(self, text: str) -> None:
        if not sys.stderr.isatty():
            return
        self._write_thinking(self._visible[True].feed(text))

    def _write_thinking(self, shown: str) -> None:
        plain = bool(os.environ.get("NO_COLOR"))
        self._write(shown if plain else click.style(shown, dim=True), err=True)

    def _write(self, text: str, *, err: bool = False) -> None:
        if not text:
            return
        click.echo(text, nl=False, err=err, color=True)  # or echo strips escapes in a pipe
        self._open[err] = not text.removesuffix("\x1b[0m").endswith("\n")

    def _end_line(self, *, err: bool = False) -> None:
        if self._open.pop(err, False):
            click.echo(err=err)

    def stop(self) -> None:
        """End any unfinished lines."""
        if rest := self._visible[True].flush():
            self._write_thinking(rest)
        if rest := self._visible[False].flush():
            self._write(rest)
        self._end_line(err=True)
        self._end_line()

    # --- the whole answer

    def show(
        self, response: Response, output: Output | None, *, value: Any = UNKNOWN,
        took: str = "",
    ) -> None:  # fmt: skip
        """Print a whole answer, or what streaming did not print of it.

        `value` is its JSON, if already parsed and validated; `took` is the usage line, which is
        printed with --usage.
        """
        if not self.streams and response.choices:
            self.say("thinking", response.message.thinking)
            if not self._options.has_schema:
                self.say("text", self._extracted(response.text))
        self.stop()
        if self._is_document:
            click.echo(response.to_json())
        elif self._options.has_schema and not self.streams:
            self._show_json(_parsed(response) if value is UNKNOWN else value)
        if self._options.usage:
            click.echo(took, err=True)
        self._remark(response, output if value is UNKNOWN else None)

    def _extracted(self, text: str) -> str:
        """The whole text, or with --extract its first code block."""
        if not self._options.extract:
            return text
        from dragoman.cli.code_blocks import code_blocks

        found = code_blocks(text)
        if not found:
            complain("there is no code block in the answer; printing all of it")
        return found[0] if found else text

    def _show_json(self, value: Any) -> None:
        from dragoman.model.jsontext import dumps

        if value is not UNKNOWN:
            import json

            text = json.dumps(value, ensure_ascii=False, indent=2) if self._is_seen else ""
            click.echo(harmless(text) if text else dumps(value).decode())

    def _remark(self, response: Response, output: Output | None) -> None:
        """Print warnings about the answer; exit with an error if it was refused or doesn't fit."""
        for remark in _remarks(response):
            complain(remark)
        if _is_refused(response):
            raise Ending(PROVIDER, "the model refused, or a content filter blocked the answer")
        if output is not None and (problem := _misfit(response, output)):
            raise Ending(BROKEN, problem)


async def answered(model: OpenedModel, request: Request, printer: Printer) -> Response:
    """Send the request and return the response, printed as it arrives if streamed."""
    async with model:
        if printer.streams:
            return await _streamed(model, request, printer)
        with waiting(f"Asking {model.name} …"):
            return await model.send(request)


async def _streamed(model: OpenedModel, request: Request, printer: Printer) -> Response:
    try:
        with ExitStack() as sign:
            sign.enter_context(waiting(f"Asking {model.name} …"))
            async with model.stream(request) as stream:
                async for event in stream:
                    sign.close()
                    printer.hear(event)
    finally:
        printer.stop()
    return stream.response


# --- warnings about an answer


def _parsed(response: Response) -> Any:
    """The answer as JSON, or `UNKNOWN` if it is not valid JSON."""
    from dragoman.errors import InvalidInputError
    from dragoman.model.jsontext import loads

    try:
        return loads(response.text)
    except InvalidInputError:
        return UNKNOWN


def _misfit(response: Response, output: Output) -> str | None:
    """How the answer violates the schema, without quoting it; None if it fits."""
    from dragoman.model.validation.problems import in_sentences, problems

    value = _parsed(response)
    if value is UNKNOWN:
        return "the answer is not JSON, which --schema requires"
    found = problems(output.schema, value)
    return f"the answer does not match the schema: {in_sentences(found)}" if found else None


def _is_refused(response: Response) -> bool:
    from dragoman.model.parts import Refusal
    from dragoman.model.usage import FinishReason

    if not response.choices:
        return False
    declined = any(isinstance(part, Refusal) for part in response.message.parts)
    return declined or response.finish in {FinishReason.REFUSAL, FinishReason.CONTENT_FILTER}


def _remarks(response: Response) -> list[str]:
    """Warnings about what the text alone doesn't show."""
    from dragoman.model.media import Media
    from dragoman.model.usage import FinishReason

    if not response.choices:
        return ["the model returned no answer"]
    found: list[str] = []
    media = [part for part in response.message.parts if isinstance(part, Media)]
    if response.tool_calls:
        found.append("the model called tools that it was not given; --json shows the calls")
    if media:
        found.append(f"the answer has parts that are not text ({len(media)}); --json shows them")
    if response.finish is FinishReason.CONTEXT_FULL:
        found.append("the answer was cut off: the model's context window is full")
    elif response.finish in {FinishReason.LENGTH, FinishReason.MALFORMED_CALL}:
        found.append("the answer was cut off; raise --max-tokens")
    return found
