"""OpenAI's Chat Completions, and what the many servers that speak it have added."""
