"""Answers to the lab's questions, each with the test it was put to."""
