"""Local models, run by llama.cpp's server: no key, no account, no network."""
