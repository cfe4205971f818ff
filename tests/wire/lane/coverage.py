"""How many recorded requests take the lane, and whether results equal the general path.

`python -m tests.wire.lane.coverage` compares all of them for all targets (`DRAGOMAN_TIER=extended`
for the whole corpus); with a dialect's name as argument, only those of that source.
"""

from __future__ import annotations

import json
import sys
from collections import Counter

import dragoman.wire.lane.requests as lane
from tests.corpus import Corpus
from tests.wire.lane import requests as lanes
from tests.wire.recorded import bodies


def main(sources: list[str]) -> None:
    """Print the figures by source and target."""
    lane.LONG = 0
    corpus = Corpus.open()
    all_in_all = Counter[str]()
    for source in sources or lanes.DIALECTS:
        took = Counter[str]()
        count = 0
        for body in bodies(corpus, source):
            if body.kind != "request":
                continue
            count += 1
            raw = json.dumps(body.wire).encode()
            for target in lanes.TARGETS:
                found = lanes.difference(raw, source, target)
                if isinstance(found, str):
                    all_in_all["different"] += 1
                    print(f"{body.recording.row.file} to {target}: {found[:500]}")
                else:
                    took[target] += found.took_lane
        shares = ", ".join(f"{target} {took[target] / count:.1%}" for target in lanes.TARGETS)
        print(f"{source}, {count} requests: {shares}", flush=True)
        all_in_all["compared"] += count * len(lanes.TARGETS)
        all_in_all["lane"] += took.total()
    share = all_in_all["lane"] / all_in_all["compared"]
    print(f"{dict(all_in_all)}: {share:.1%} take the lane")


if __name__ == "__main__":
    main(sys.argv[1:])
