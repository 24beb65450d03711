"""Files of strangers, read with limits: each reader knows how large what it makes may become before
it makes it, and says so in the words of `cordes.errors`."""
