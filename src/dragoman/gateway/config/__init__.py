"""What the gateway is told: `dragoman.toml`, the environment, and the routes that follow."""
