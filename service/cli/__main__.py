"""`python -I -m service.cli`: how the command line starts other processes of itself."""

from service.cli import main

main()
