"""Tests of the schema compiler."""
