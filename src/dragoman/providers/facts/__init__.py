"""What is known of models, as data: each row says where it is from, and when that was looked up.

One file for each maker: `FAMILIES` (the flags that differ), `SIZES` (how many tokens they take and
write), `NAMES` (those that the maker lists). What users say in place of it is in `overrides`.
"""
