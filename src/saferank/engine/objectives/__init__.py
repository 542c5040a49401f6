"""What training maximises: one method per file, each a choice of rewards and risk weights."""
