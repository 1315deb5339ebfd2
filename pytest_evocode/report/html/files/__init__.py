"""The files of a report: how they are packed and written, and what lies beside the pages for other programs."""
