"""The canonical model: immutable values, without any I/O."""
