"""A tenant's data as a whole: export, import, reindex, verify, consolidate, erase. It imports all that it erases."""
