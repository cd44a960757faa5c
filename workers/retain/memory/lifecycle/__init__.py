"""The life cycle of memory: out and in again, rebuilt, checked, consolidated, erased, and proved."""
