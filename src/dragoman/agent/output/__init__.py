"""Typed output: how a model is asked for a value of a type, and how its answer is read."""
