"""The agent: a conversation with tools, typed results and streams, on any model."""
