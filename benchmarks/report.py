"""What a benchmark found, as lines: a figure, a ratio, and the bar it has to clear."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """One thing measured against another."""

    what: str
    ratio: float
    at_most: float | None = None
    at_least: float | None = None
    unit: str = "x"

    @property
    def is_met(self) -> bool:
        """Whether the bar is cleared; without a bar there is nothing to miss."""
        return (self.at_most is None or self.ratio <= self.at_most) and (
            self.at_least is None or self.ratio >= self.at_least
        )

    def __str__(self) -> str:
        bar = ""
        if self.at_most is not None:
            bar = f"  (at most {self.at_most:g})"
        elif self.at_least is not None:
            bar = f"  (at least {self.at_least:g})"
        mark = "" if self.is_met else "  MISSED"
        return f"  {self.what:58} {self.ratio:8.2f} {self.unit}{bar}{mark}"


def duration(seconds: float) -> str:
    """Seconds in a unit that people read."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def show(title: str, times: dict[str, float], ratios: list[Ratio]) -> None:
    """Print one benchmark's figures."""
    print(f"\n{title}")
    for name, value in times.items():
        print(f"  {name:58} {duration(value):>10}")
    for ratio in ratios:
        print(ratio)
