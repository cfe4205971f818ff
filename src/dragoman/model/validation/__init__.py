"""JSON values held against a JSON Schema, with findings that a model can act on."""
