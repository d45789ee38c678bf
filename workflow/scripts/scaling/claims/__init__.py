"""Answers to the lab's questions, each with its test."""
