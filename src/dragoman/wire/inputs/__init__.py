"""What people hand in, read into messages."""
