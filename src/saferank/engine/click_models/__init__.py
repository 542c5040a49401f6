"""How users click."""
