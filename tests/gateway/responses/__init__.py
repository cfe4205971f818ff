"""Stored responses, conversations, background, WebSocket and sessions, on real sockets."""
