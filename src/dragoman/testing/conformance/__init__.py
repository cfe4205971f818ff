"""Conformance tests for what others add: dialects, providers, history stores and key stores.

They are tests for pytest, which a test module of yours imports, beside the fixture that they use:

```python
from dragoman.testing.conformance.stores import *


@pytest.fixture
def backend(tmp_path):
    yield Backend("mine", lambda: MyStorage(tmp_path))


new_backend = backend
```

| module | fixture |
|---|---|
| `stores` | `backend` and `new_backend`: a `Backend`, with nothing in it |
| `key_stores` | `place`: a `Place`, with nothing in it |
| `dialects` | `spoken`: a `Dialect` |
| `providers` | `host`: a `Provider` |

They need pytest and no plugin, and run beside pytest-asyncio and others.
"""

from __future__ import annotations

import pytest

for _part in ("dialects", "key_stores", "providers", "stores"):
    pytest.register_assert_rewrite(f"{__name__}.{_part}")  # so that a failure shows the values
