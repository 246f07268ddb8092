"""The pages Input pipeline and tf.data."""
