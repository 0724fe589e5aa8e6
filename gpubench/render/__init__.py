"""Results in, text or pictures out; nothing here measures."""
