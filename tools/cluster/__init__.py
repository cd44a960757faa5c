"""A cluster of your own machines: the same Worker on several workerd processes that share a bucket."""
