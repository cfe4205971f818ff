"""Tests of what the gateway serves besides chats."""
