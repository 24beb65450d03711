"""Words and pictures of kinds of problems, a file each: they register themselves."""
