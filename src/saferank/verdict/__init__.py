"""The verdict on a policy, from interactions that its training never saw."""
