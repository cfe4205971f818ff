"""Messages of other libraries in their own stored form: what they dump, we read and write.

Not dialects, which are the wire formats of providers: these are read out of programs and stores,
and written back there. The libraries themselves are not needed here.
"""
