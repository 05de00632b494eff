"""`python -m policysweep`: the command line."""

from policysweep.cli import main

if __name__ == "__main__":
    main()
