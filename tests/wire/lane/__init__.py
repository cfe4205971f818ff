"""The fast lane: the same as the general way, for any input."""
