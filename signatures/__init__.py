"""What each role of a debate reads and writes, and the types of answers and transcripts."""
