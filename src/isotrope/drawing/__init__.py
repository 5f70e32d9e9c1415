"""What people look at, from plain numbers: a curve over layers, a small table; nothing here knows a model or a run."""
