"""A learned ranking policy: storing it in a folder, scoring and ranking with it. Nothing here trains."""
