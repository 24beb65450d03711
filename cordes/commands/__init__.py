"""One file for each command: `make_report` takes its arguments and makes one `Report`."""
