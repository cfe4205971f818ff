"""Recorded API traffic: where it is and how to select from it.

The recordings stay outside the repository. `DRAGOMAN_CORPUS` names their folder; the default is
`../shared/corpus` beside the checkout. `DRAGOMAN_TIER=extended` widens every selection from the
`core` tier to everything. Benchmarks import this module too, so it needs only the standard
library; the parts about pytest are in `conftest.py`.
"""

from __future__ import annotations

import base64
import csv
import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, cast

Tier = Literal["core", "extended"]

REPOSITORY = Path(__file__).resolve().parent.parent
BESIDE = REPOSITORY.parent / "shared" / "corpus"


class CorpusNotFoundError(Exception):
    """There are no recordings; the text says where they were looked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `INDEX.tsv`: what is known of a recording before it is read."""

    file: str
    provider_api: str
    streaming: bool
    status: int
    features: frozenset[str]
    size: int
    tier: Tier
    fidelity: str
    host: str
    model: str
    flags: frozenset[str]
    source: str
    license: str

    @classmethod
    def from_tsv(cls, line: Mapping[str, str]) -> Self:
        """The row that a line of the index describes."""
        return cls(
            file=line["file"],
            provider_api=line["provider_api"],
            streaming=line["streaming"] == "1",
            status=int(line["status"]),
            features=_words(line["features"]),
            size=int(line["bytes"]),
            tier=cast("Tier", line["tier"]),
            fidelity=line["fidelity"],
            host=line["host"],
            model=line["model"],
            flags=_words(line["flags"]),
            source=line["source"],
            license=line["license"],
        )


class Recording:
    """One exchange: a request and its response. The file is read on first use."""

    def __init__(self, row: Row, path: Path) -> None:
        self.row = row
        self.path = path

    def __repr__(self) -> str:
        return f"Recording({self.row.file!r})"

    @cached_property
    def content(self) -> dict[str, Any]:
        """The parsed file."""
        return cast("dict[str, Any]", json.loads(self.path.read_bytes()))

    @property
    def seq(self) -> int | None:
        """The position in its conversation: recordings of one `row.source` follow each other."""
        return cast("int | None", self.content.get("seq"))

    @property
    def request_path(self) -> str:
        """The path of the URL: Gemini has the model and streaming there."""
        return cast("str", self.content["request"]["path"])

    @property
    def request_headers(self) -> dict[str, str]:
        """The recorded headers; mostly none."""
        return cast("dict[str, str]", self.content["request"].get("headers") or {})

    @property
    def request_body(self) -> Any:
        """The request's JSON; None if only the response was recorded."""
        return self.content["request"]["body"]

    @property
    def response_headers(self) -> dict[str, str]:
        """The recorded headers."""
        return cast("dict[str, str]", self.content["response"].get("headers") or {})

    @property
    def response_body(self) -> Any:
        """The response's JSON; None for streams (Gemini's JSON arrays excepted)."""
        return self.content["response"].get("body")

    @property
    def response_stream(self) -> bytes | None:
        """The raw stream, SSE, NDJSON or AWS frames; None for plain bodies and lost frames."""
        response = self.content["response"]
        for framing in ("sse", "ndjson"):
            if framing in response:
                return cast("str", response[framing]).encode()
        return base64.b64decode(response["raw_b64"]) if "raw_b64" in response else None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder of recordings with its index."""

    root: Path
    rows: tuple[Row, ...]

    @classmethod
    def open(cls) -> Self:
        """The corpus of this machine; raises `CorpusNotFoundError` if there is none."""
        root = corpus_root()
        with (root / "INDEX.tsv").open(encoding="utf-8", newline="") as index:
            lines = csv.DictReader(index, delimiter="\t", quoting=csv.QUOTE_NONE)
            return cls(root, tuple(Row.from_tsv(line) for line in lines))

    def select(
        self,
        *,
        provider_api: str | Collection[str] | None = None,
        tier: Tier | None = None,
        streaming: bool | None = None,
        status: int | Collection[int] | None = None,
        fidelity: str | Collection[str] | None = None,
        features: Collection[str] = (),
    ) -> Iterator[Recording]:
        """The recordings that meet every given condition, in the order of the index.

        Without `tier` the environment decides (`current_tier`); `extended` includes `core`.
        A recording must have all of `features`.
        """
        core_only = (tier or current_tier()) == "core"
        wanted = frozenset(features)
        for row in self.rows:
            if (
                (row.tier == "core" or not core_only)
                and _matches(row.provider_api, provider_api)
                and (streaming is None or row.streaming == streaming)
                and _matches(row.status, status)
                and _matches(row.fidelity, fidelity)
                and wanted <= row.features
            ):
                yield Recording(row, self.root / row.file)


def corpus_root() -> Path:
    """The folder of the corpus; raises `CorpusNotFoundError` if there is none."""
    named = os.environ.get("DRAGOMAN_CORPUS")
    root = Path(named) if named else BESIDE
    if (root / "INDEX.tsv").is_file():
        return root
    if named:
        msg = f"DRAGOMAN_CORPUS names {root}, which holds no INDEX.tsv"
        raise FileNotFoundError(msg)  # it was set explicitly: an error, not a reason to skip
    msg = f"no recorded traffic: DRAGOMAN_CORPUS is not set and {root} does not exist"
    raise CorpusNotFoundError(msg)


def current_tier() -> Tier:
    """The value of `DRAGOMAN_TIER`; `core` by default."""
    tier = os.environ.get("DRAGOMAN_TIER") or "core"
    if tier not in {"core", "extended"}:
        msg = f"DRAGOMAN_TIER must be core or extended, not {tier!r}"
        raise ValueError(msg)
    return cast("Tier", tier)


def _words(cell: str) -> frozenset[str]:
    return frozenset(cell.split(",")) if cell else frozenset()


def _matches(value: object, wanted: object) -> bool:
    if wanted is None:
        return True
    if isinstance(wanted, Collection) and not isinstance(wanted, str):
        return value in wanted
    return value == wanted
