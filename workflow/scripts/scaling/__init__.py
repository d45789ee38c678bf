"""The library of the scaling study: pure functions and the training engine.

It imports neither Snakemake nor a script; data flows one way through it:
dataset -> runs -> tables -> figures -> report.
"""
