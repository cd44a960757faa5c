"""A tenant's data as a whole: export, import, reindex, verify, consolidate, erase. The layer above all that it erases."""
