"""What an instance does besides its runs: messages to webhooks, and forgetting what is erased."""
