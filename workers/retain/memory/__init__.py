"""What an agent remembers: working memory, episodes, records found by recall, and procedures."""
