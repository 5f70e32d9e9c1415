"""python -m isotrope: the same as the command `isotrope`."""

from isotrope.cli.main import main

if __name__ == "__main__":
    main()
