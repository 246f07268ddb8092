"""Two tf.data pipelines side by side."""
