"""Answers from your own documents, with sources that can be checked.

    python examples/rag.py                                       # uses a script, needs no key
    python examples/rag.py "Who built the bridge?" notes/*.md --model openai:gpt-5 \
        --embeddings 'openai?embeddings=text-embedding-3-small'

Shows embeddings, retrieval as a tool, and typed output with quotations. A hook rejects answers with
a quotation that is not in the passage.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from dragoman import Agent, Message, Model, RunContext, ToolCall, tool
from dragoman.agent import Hooks
from dragoman.errors import ToolRetry
from dragoman.testing import ScriptedModel

SAMPLES = [
    "The Old Bridge in Mostar was built by Mimar Hayruddin and finished in 1566.",
    "The Neretva rises in the Dinaric Alps and flows through Mostar to the Adriatic.",
    "Basel lies on the Rhine, where Switzerland, France and Germany meet.",
]


@dataclass
class Source:
    """The source of an answer: the passage's number, and a quotation from it."""

    passage: int
    quote: str


@dataclass
class Answer:
    """An answer, with at least one source."""

    text: str
    sources: list[Source]


@dataclass
class Library:
    """Passages and their vectors. A real one would keep them in a database."""

    embedder: Agent | None
    passages: list[str]
    vectors: list[tuple[float, ...]] = field(default_factory=list)

    async def find(self, query: str, count: int = 2) -> dict[int, str]:
        """The passages nearest to a query, by their numbers."""
        if not self.vectors:
            self.vectors = await self.embed(self.passages)
        (wanted,) = await self.embed([query])
        score = [sum(a * b for a, b in zip(wanted, each, strict=True)) for each in self.vectors]
        best = sorted(range(len(score)), key=score.__getitem__, reverse=True)[:count]
        return {number: self.passages[number] for number in best}

    async def embed(self, texts: list[str]) -> list[tuple[float, ...]]:
        """Vectors of texts: a model's, or counts of some letters without a model."""
        if self.embedder is None:
            return [tuple(float(text.lower().count(c)) for c in "bdhmr") for text in texts]
        return [each.vector for each in await self.embedder.embed_documents(texts)]


@tool
async def search(query: str, run: RunContext[Library]) -> dict[int, str]:
    """Search the documents; returns passages by their numbers."""
    return await run.deps.find(query)


def check_quotes(answer: Answer, run: RunContext[Library]) -> None:
    """Reject an answer whose quotation is not in its passage."""
    for source in answer.sources:
        if source.quote not in dict(enumerate(run.deps.passages)).get(source.passage, ""):
            msg = f"passage {source.passage} does not contain {source.quote!r}; quote it exactly"
            raise ToolRetry(msg)


def script() -> Model:
    """A script in place of a model, used without `--model`."""
    source = {"passage": 0, "quote": "built by Mimar Hayruddin"}
    value = {"text": "Mimar Hayruddin built it.", "sources": [source]}
    calls = [
        ToolCall.create("call_1", "search", {"query": "Who built the bridge in Mostar?"}),
        ToolCall.create("call_2", "return_result", value),
    ]
    return ScriptedModel([Message.assistant(tool_calls=[call]) for call in calls])


async def main() -> None:
    """Answer a question, and print the sources of the answer."""
    parser = argparse.ArgumentParser(description="Answers with sources.")
    parser.add_argument("--model", help="provider:model (default: a script)")
    parser.add_argument("--embeddings", help="provider?embeddings=model (default: letters)")
    parser.add_argument("question", nargs="?", default="Who built the Old Bridge?")
    parser.add_argument("documents", nargs="*", type=Path)
    options = parser.parse_args()

    passages = [text for file in options.documents for text in file.read_text().split("\n\n")]
    embedder = Agent(options.embeddings) if options.embeddings else None
    library = Library(embedder, passages or SAMPLES)
    hooks = Hooks(before_output=check_quotes)
    agent = Agent(options.model or script(), tools=[search], output=Answer, hooks=hooks)
    result = await agent.send(options.question, deps=library)
    print(result.output.text)
    for source in result.output.sources:
        print(f"  [{source.passage}] “{source.quote}”")


if __name__ == "__main__":
    asyncio.run(main())
