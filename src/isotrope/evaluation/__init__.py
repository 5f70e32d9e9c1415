"""Whether a repair helps: scores on real tasks, raw and repaired, with every difference's interval and p-value."""
