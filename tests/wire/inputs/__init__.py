"""Tests of what people hand in as messages."""
