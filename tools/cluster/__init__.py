"""A cluster of one's own machines: the same Worker on several workerd processes that share a bucket."""
