"""Fine-tuning on GLUE with and without SoftDecay, over several seeds."""
