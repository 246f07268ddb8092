"""The tf.data pipelines of a profile, and its input ops."""
