"""Places that speak a dialect: each a value in a file of its own, found by listing this folder."""
