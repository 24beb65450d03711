"""Certificates: guaranteed bounds of the error."""
