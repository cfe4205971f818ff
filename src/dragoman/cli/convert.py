"""`dragoman convert`: convert documents into another dialect."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from dragoman.cli.exit_codes import EXIT_CODES, INPUT, OK, Ending, clean_ending, jobs_option

if TYPE_CHECKING:
    from dragoman.cli.atomic_files import Output
    from dragoman.cli.conversion import Job

_OUTPUT = click.Path(dir_okay=False, writable=True)


@click.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=INPUT, metavar="FILE...")
@click.option("--from", "source", default="auto", show_default=True, metavar="DIALECT",
              help="Format of the documents: a dialect, canonical, or auto.")  # fmt: skip
@click.option("--to", "target", required=True, metavar="TARGET",
              help="Format to write: a dialect, a provider, provider:model, or"
              " canonical.")  # fmt: skip
@click.option(
    "--out", type=_OUTPUT, metavar="FILE", help="Write to this file instead of standard output."
)
@click.option(
    "--losses", type=_OUTPUT, metavar="FILE", help="Write every loss to this file, as JSONL."
)
@click.option("--strict", is_flag=True, help="Treat a document with losses as an error.")
@jobs_option
@click.option("--keep-going", is_flag=True, help="Skip broken documents.")
@click.option("--rejects", type=_OUTPUT, metavar="FILE",
              help="Write skipped documents to this file, unchanged. Implies"
              " --keep-going.")  # fmt: skip
def convert(
    files: tuple[str, ...],
    source: str,
    target: str,
    out: str | None,
    losses: str | None,
    rejects: str | None,
    jobs: int,
    **flags: bool,
) -> None:
    """Convert requests, responses and histories into another dialect.

    A FILE holds one document, an array of documents, or one document on each line (JSONL), of any
    size; - is standard input. A request becomes a request, a response a response, and an array
    of messages a request without a model. Losses and repairs are listed on standard error.
    """
    keep_going = flags["keep_going"] or rejects is not None
    with clean_ending(), ExitStack() as stack:
        from dragoman.cli.atomic_files import Output, refuse_same
        from dragoman.cli.conversion import Job
        from dragoman.cli.conversion_report import Tally
        from dragoman.cli.pipeline import Pipeline

        refuse_same((name for name in files if name != "-"), (out, losses, rejects))
        job = Job(source, target, flags["strict"], keep_going, itemised=losses is not None)
        _check_names(job)
        itemised, left_out = _opened(losses, stack), _opened(rejects, stack)
        output = stack.enter_context(Output(out))
        code = Pipeline(job, jobs, output, Tally(itemised, left_out)).run(files)
        for report in (itemised, left_out):
            if report is not None:
                report.keep()
        if code != OK:
            raise Ending(code)


def _opened(name: str | None, stack: ExitStack) -> Output | None:
    from dragoman.cli.atomic_files import Output

    return None if name is None else stack.enter_context(Output(name))


def _check_names(job: Job) -> None:
    """Raise if the dialect or target is unknown, before anything is read or written."""
    from dragoman.providers.documents.reading import Reader
    from dragoman.providers.documents.writing import Destination

    Reader(job.source)
    Destination(job.target)
