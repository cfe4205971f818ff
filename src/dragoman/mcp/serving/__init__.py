"""Histories, translation and checks for any assistant: an MCP server, on the official SDK."""
