"""Wire formats: between providers' JSON and the model, without any I/O."""
