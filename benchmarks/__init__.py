"""Dragoman side by side with its peers: `make bench` runs everything and prints ratios."""
