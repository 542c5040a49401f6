"""From wherever features lie to arrays."""
