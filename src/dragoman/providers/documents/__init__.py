"""Reading, writing and checking whole documents: requests, responses and histories."""
