"""The gateway's configuration: `dragoman.toml`, environment variables and routing."""
