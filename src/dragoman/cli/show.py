"""`dragoman show`: show conversations for people to read."""

from __future__ import annotations

import click

from dragoman.cli.exit_codes import BROKEN, EXIT_CODES, INPUT, Ending, clean_ending, complain


@click.command(epilog=EXIT_CODES, short_help="Show requests, responses and histories.")
@click.argument("files", nargs=-1, required=True, type=INPUT, metavar="FILE...")
@click.option("--from", "source", default="auto", show_default=True, metavar="DIALECT",
              help="Format of the documents: a dialect, canonical, or auto.")  # fmt: skip
@click.option("--short", is_flag=True, help="Shorten long texts.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the documents in canonical form, as JSONL."
)
def show(files: tuple[str, ...], source: str, *, short: bool, as_json: bool) -> None:
    """Show requests, responses and histories of any dialect.

    A FILE holds one document, an array of documents, or one document on each line (JSONL); - is
    standard input. Media are described, not shown. Control characters are made visible.
    """
    with clean_ending():
        from dragoman.cli.documents import documents, read_session
        from dragoman.cli.folding import Screen
        from dragoman.errors import DragomanError, InvalidInputError
        from dragoman.providers.documents.reading import Reader

        reader, screen = Reader(source, read_session), Screen(short=short)
        number = broken = 0
        for batch in documents(files):
            for piece in batch.documents():
                number += 1
                try:
                    if piece.problem is not None:
                        raise InvalidInputError(piece.problem)
                    document = reader.read(piece.raw)
                    if as_json:
                        click.echo(document.value.to_json())
                    else:
                        screen.show(document, number)
                    for loss in document.losses:
                        complain(f"{batch.name}:{piece.line}: {loss.reason}")
                except DragomanError as error:
                    broken += 1
                    which = f" document {number}:" if batch.of_array else ""
                    complain(f"{batch.name}:{piece.line}:{which} {error}")
        if broken:
            raise Ending(BROKEN)
