"""Policies in the formats that other servers read, with rows and scores that prove it."""
