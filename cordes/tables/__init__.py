"""Data that are no formula: arrays, images and samples as functions of one point."""
