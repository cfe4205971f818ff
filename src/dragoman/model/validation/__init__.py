"""JSON Schema validation, with error messages that a model can act on."""
