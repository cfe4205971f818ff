"""Ollama's own API: `/api/chat`. Its `/v1` speaks OpenAI Chat."""
