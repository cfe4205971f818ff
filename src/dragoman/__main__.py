"""Runs the command line with `python -m dragoman`."""

from dragoman.cli import main

if __name__ == "__main__":
    main()
