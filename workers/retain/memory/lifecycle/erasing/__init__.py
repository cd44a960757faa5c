"""The steps of an erasure, and the receipts that they leave."""
