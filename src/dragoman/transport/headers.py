"""Headers whose names are looked up whatever their case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Headers(Mapping[str, str]):
    """Headers of a reply that did not come over the network.

    >>> Headers({"Retry-After": "1"})["retry-after"]
    '1'
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._named = {name.lower(): value for name, value in headers.items()}

    def __getitem__(self, name: str) -> str:
        return self._named[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __repr__(self) -> str:
        return f"Headers({len(self)} of them)"
