"""Erasure of a tenant or a subject: the steps, slice by slice, and the receipts they leave."""
