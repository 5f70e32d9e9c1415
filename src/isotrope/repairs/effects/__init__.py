"""Effects of a repair: measures before and after, cosine cut-offs, and risks."""
