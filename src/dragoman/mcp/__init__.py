"""The Model Context Protocol: servers whose tools agents use, and a server of histories."""
