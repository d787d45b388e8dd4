"""Pure scoring: reading answers from text, scoring them, and statistics over scores."""
