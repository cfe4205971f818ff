"""The version, read by both the build and the package."""

__version__ = "0.1.0.dev0"
