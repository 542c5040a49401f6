"""Files that are ours: JSON with a format and a version, written atomically."""
