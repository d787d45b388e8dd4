"""What is asked: data sources, questions, answer types, splits, scoring and demonstrations."""
