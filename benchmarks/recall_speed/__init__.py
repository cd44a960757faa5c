"""What a recall takes on workerd through HTTP, and in which process."""
