"""Numbers that the papers print, as plain tables: facts with their place, never data sets."""
