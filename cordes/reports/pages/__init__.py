"""Reports as pages: one self-contained HTML file each, which opens by double-click and asks nothing
of the network."""
