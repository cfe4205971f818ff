"""Turns Python types and functions into tools: JSON Schema, and conversion of JSON arguments."""
