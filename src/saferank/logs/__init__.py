"""Click logs: reading them, wherever they are stored, and counting them."""
