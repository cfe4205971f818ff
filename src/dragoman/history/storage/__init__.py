"""Where histories are kept: one protocol, one file per backend."""
