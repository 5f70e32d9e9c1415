"""What people look at, drawn from plain numbers: curves, scatters and tables; nothing here knows a model or a run."""
