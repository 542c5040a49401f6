"""From features, wherever they are stored, to ranking data: reading and checking tables, preparing features."""
