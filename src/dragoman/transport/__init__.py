"""The only network I/O there is: clients of models, retries, fallbacks, and replayed traffic."""
