"""Checks the search of a built site: `python docs/site/check_search.py build/site`.

For each of these words, the page that answers comes first. `search.mjs` asks the worker that a
reader's browser runs, so it needs node; without it nothing is checked, and that is said.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FIRST = {
    "attach image": "guides/build-an-agent/#attach-an-image-or-a-file",
    "base_url": "guides/call-models/#configure-a-client-key-base_url-headers",
    "budget": "operations/keys/#limits-and-budgets",
    "claude code": "operations/coding-agents/#claude-code",
    "context window": "guides/context-windows/",
    "cost": "guides/costs/",
    "docker": "operations/scaling/#docker-podman-systemd",
    "encryption": "guides/store-conversations/#encryption",
    "export chatgpt": "guides/import-conversations/#chatgpt-claude-and-sharegpt",
    "fallback": "guides/fallbacks/",
    "install": "get-started/install/",
    "jupyter": "recipes/notebooks/",
    "logging": "operations/run-the-gateway/#health-checks-metrics-and-logging",
    "mcp": "guides/mcp-client/",
    "ollama": "guides/call-models/#local-models-llamacpp-ollama",
    "opentelemetry": "guides/tracing/",
    "parquet": "recipes/data-frames/",
    "postgres": "guides/store-conversations/#storage-backends-sqlite-postgresql-redis-files",
    "redis": "guides/store-conversations/#storage-backends-sqlite-postgresql-redis-files",
    "retry": "guides/call-models/#retry-policy-and-timeouts",
    "structured output": "guides/typed-output/",
    "test without network": "guides/test-agents/",
    "token count": "guides/context-windows/#token-counts",
}


def problems(site: Path, node: str) -> Iterator[str]:
    """The words for which something else comes first, one line each."""
    command = [node, str(Path(__file__).with_name("search.mjs")), str(site), *FIRST]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    for (words, wanted), line in zip(FIRST.items(), done.stdout.splitlines(), strict=True):
        found = json.loads(line)
        if found[:1] != [wanted]:
            yield f"search for {words!r}: {', '.join(found[:3]) or 'nothing'}; not {wanted}"


def main() -> int:
    """Prints the problems; 1 if there are any."""
    node = shutil.which("node")
    if node is None:
        print("the search is not checked: that needs node")
        return 0
    found = list(problems(Path(sys.argv[1]), node))
    print("\n".join(found) or f"search: {len(FIRST)} questions, no problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
