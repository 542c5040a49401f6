"""Click logs from labelled data: a click model, counts for any number of interactions, and raw logs."""
