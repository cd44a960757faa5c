"""Moving in: what other products export, as lines that an import takes. docs/moving-in.md says what maps to what."""
