"""Courier: a wire format of our own making, for the how-to and the tests."""
