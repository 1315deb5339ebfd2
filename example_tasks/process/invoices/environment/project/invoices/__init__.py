"""Adds up invoices."""
