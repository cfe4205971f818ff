"""Plain conversations, read from bytes and written by generated code; all else takes the steps."""
