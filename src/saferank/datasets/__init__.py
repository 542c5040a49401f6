"""Labelled data sets: LETOR files and synthetic data."""
