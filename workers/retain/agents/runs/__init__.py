"""A run as data: its events, their fold, what comes next, its context and its journal."""
