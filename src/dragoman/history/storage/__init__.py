"""Storage backends for histories: one protocol, one module or package per backend."""
