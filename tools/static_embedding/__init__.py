"""How the local embedding table is made: a sentence model distilled into one row per word piece."""
