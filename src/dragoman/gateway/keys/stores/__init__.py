"""Where keys can be kept: SQLite, PostgreSQL, Redis."""
