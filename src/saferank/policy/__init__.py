"""A learned ranking policy: how it is kept in a folder, and how it scores and ranks. Nothing here trains."""
