"""Data: ranking data and click logs, read, checked and counted."""
