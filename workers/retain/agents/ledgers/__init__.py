"""What an instance owes the ledgers in D1: its parked errors, its changes in KV, and the decisions of its runs."""
