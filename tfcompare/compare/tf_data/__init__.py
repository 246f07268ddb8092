"""Compares tf.data pipelines."""
