"""Which calls only read: programs, with the options left out that would write or run something."""
