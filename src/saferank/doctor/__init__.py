"""Is this log fit to learn from? Numbers and plain words; nothing is printed here."""
