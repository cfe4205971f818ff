"""The MCP server of Dragoman: histories, translation and checks for any assistant."""
