"""Datasets: sources, preparation and loading of images."""
