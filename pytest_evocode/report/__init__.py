"""Text for people and other programs, made from records by pure functions: tables, Markdown, CSV and Parquet."""
