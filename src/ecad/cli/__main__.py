"""words after `python -m ecad.cli` -> the command `ecad`."""

from . import main

if __name__ == "__main__":
    main()
