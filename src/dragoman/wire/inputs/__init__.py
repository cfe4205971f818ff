"""What people hand in as messages: texts, dicts of any dialect, objects of other libraries."""
