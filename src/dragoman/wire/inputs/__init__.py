"""Reads user input as messages: texts, dicts of any dialect, objects of other libraries."""
