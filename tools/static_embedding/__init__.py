"""Make the local embedding table: a sentence model distilled into one row per word piece."""
