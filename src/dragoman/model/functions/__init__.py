"""Python types and functions as tools: their JSON Schema, and JSON arguments as their values."""
