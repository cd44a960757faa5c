"""How the local embedding table is made: a sentence model distilled into one row a word piece."""
