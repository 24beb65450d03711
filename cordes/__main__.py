"""`python -m cordes` is the command line."""

from cordes.cli import main

if __name__ == "__main__":
    main()
