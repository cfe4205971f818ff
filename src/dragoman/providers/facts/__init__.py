"""Data about models; each row has its source and date.

One file for each vendor: `FAMILIES` (flags that differ), `SIZES` (context windows and output
limits), `NAMES` (the models that the vendor lists). User overrides are in `overrides`.
"""
