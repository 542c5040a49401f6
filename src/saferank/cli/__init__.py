"""The command line: `saferank COMMAND`."""
