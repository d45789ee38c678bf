"""Claims: answers to the lab's questions, each with a test."""
