"""A tenant's data as a whole: export, import, reindex, verify, consolidate, erase. It stands above everything it erases."""
