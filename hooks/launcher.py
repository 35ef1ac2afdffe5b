"""`gapless` for the plugin, wherever it is installed: `plugin.sh launcher.py mcp`, `… status`."""

import os
import sys

# -I hides the neighbours, as for the hook.
sys.path.append(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from hooks import installed, starting
from hooks.run import data_folder


def main(arguments: list[str]) -> None:
    """Does not return. Exits 1 with a line on stderr when Gapless is not installed."""
    home = data_folder()
    command = installed.command(home)
    if not command:
        sys.exit(f"gapless: {starting.how_to_install(home)}")
    if os.name == "posix":
        os.execv(command[0], [*command, *arguments])  # noqa: S606
    import subprocess  # elsewhere exec ends the process that the client watches

    sys.exit(subprocess.call([*command, *arguments]))


main(sys.argv[1:])
