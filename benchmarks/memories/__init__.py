"""The same memories in Retain in-process, in LangGraph's store, and in full text alone."""
