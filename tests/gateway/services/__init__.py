"""Tests of the gateway's endpoints other than chat."""
