"""saferank: learn a better ranker from clicks, and never ship a worse one."""

__version__ = "0.1.0"
