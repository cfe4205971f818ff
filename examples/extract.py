"""Extracts typed values from documents; a dataclass defines what to extract.

    python examples/extract.py                                   # generated values, needs no key
    python examples/extract.py --model google:gemini-2.5-flash invoice.pdf letter.txt scan.png

Shows typed output, documents and images as input, concurrent requests, and how to reject a value
by your own rule. Prints one JSON object per document.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman import Agent, File, Image, RunContext
from dragoman.agent import Hooks
from dragoman.errors import ToolRetry
from dragoman.testing import TestModel

SAMPLE = "Invoice 2026-117. Two hammocks at 40.00 EUR each. Total: 80.00 EUR. Due 2026-12-01."


@dataclass
class Item:
    """One line of an invoice."""

    name: str
    count: int
    price: float


@dataclass
class Invoice:
    """An invoice; amounts are in its currency."""

    number: str
    currency: str
    items: list[Item]
    total: float


def check_total(invoice: Invoice, run: RunContext) -> None:  # noqa: ARG001 - the agent gives both
    """Send the value back to the model if its numbers don't add up."""
    total = sum(item.count * item.price for item in invoice.items)
    if abs(total - invoice.total) > 0.01:  # noqa: PLR2004 - a cent
        msg = f"the items add up to {total}, not to {invoice.total}; read the document again"
        raise ToolRetry(msg)


def document(path: Path) -> str | File | Image:
    """A document as part of a prompt."""
    if path.suffix in {".txt", ".md"}:
        return path.read_text()
    is_image = path.suffix.lower() in {".png", ".jpg", ".jpeg", ".webp", ".gif"}
    return Image.from_path(path) if is_image else File.from_path(path)


async def main() -> None:
    """Read all documents concurrently, and print the values in order."""
    parser = argparse.ArgumentParser(description="Invoices as JSON.")
    parser.add_argument("--model", help="provider:model (default: generated values)")
    parser.add_argument("documents", nargs="*", type=Path)
    options = parser.parse_args()

    documents = [document(path) for path in options.documents] or [SAMPLE]
    model = options.model or TestModel()  # generates a value of the type
    async with Agent(model, output=Invoice, hooks=Hooks(before_output=check_total)) as agent:
        prompt = "Extract the invoice."
        results = await asyncio.gather(*(agent.send(prompt, each) for each in documents))
    for result in results:
        print(msgspec.json.encode(result.output).decode())


if __name__ == "__main__":
    asyncio.run(main())
