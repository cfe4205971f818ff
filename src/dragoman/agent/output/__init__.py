"""Typed output: requesting a value of a type, and parsing it from the response."""
