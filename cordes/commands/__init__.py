"""Commands whose work is their own: `cordes new`, `cordes doctor`, and what a shell asks for when
it completes a word."""
