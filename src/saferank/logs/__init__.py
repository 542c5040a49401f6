"""From wherever a click log lies to its counts."""
