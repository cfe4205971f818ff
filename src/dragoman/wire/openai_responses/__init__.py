"""OpenAI's Responses API: a conversation is a flat list of items (messages, reasoning, calls)."""
