"""OpenAI's Chat Completions API, with the extensions of other servers that speak it."""
