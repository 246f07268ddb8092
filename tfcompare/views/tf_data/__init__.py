"""The tf.data page."""
