"""Rules over installed plugins (doctor) and over sources (check): one finding model, one table, one runner."""
