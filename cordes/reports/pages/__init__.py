"""Reports as pages: one HTML file each, which opens by double-click and needs no network."""
