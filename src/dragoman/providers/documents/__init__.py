"""Whole documents (requests, responses, histories): reading, writing and checking them."""
