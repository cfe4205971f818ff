"""Messages of other libraries in their own stored form, decoded and encoded.

These are not dialects, which are the wire formats of providers: they are read from programs and
stores, and written back there. The libraries themselves are not needed.
"""
