"""The science: pure functions of arrays. Nothing here imports anything else of saferank."""
