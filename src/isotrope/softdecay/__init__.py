"""The SoftDecay layer of torch models: its formula, the module, and how it is attached, saved and restored."""
