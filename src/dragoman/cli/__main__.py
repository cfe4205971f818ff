"""`python -m dragoman.cli`."""

from dragoman.cli import main

main()
