"""For people who search with vectors."""
