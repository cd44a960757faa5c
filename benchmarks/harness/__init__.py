"""What benchmarks that compare use: bare workerd, contestants in turn, process accounting, figures, reports."""
