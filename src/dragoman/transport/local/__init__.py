"""Models on this machine, run by llama.cpp's own server: no key, no account, no network."""
