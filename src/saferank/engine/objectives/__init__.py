"""What training maximises: one method per file, each a choice of reward and spread in one of two forms."""
