"""The fast lane gives the same results as the general path, for any input."""
