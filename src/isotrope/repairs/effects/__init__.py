"""Effects of a repair: measures before and after, and risks."""
