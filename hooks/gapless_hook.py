"""The program that a client starts for each event: `python -I -S …/hooks/gapless_hook.py [--client NAME]`.

It always exits 0, as any other code blocks or steers some host, and leaves the work to `hooks.run`, whose byte code is
cached.
"""

import os
import sys

try:
    # -I hides the neighbours. The folder goes last, so that nothing in it can take the place of a standard module.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from hooks.run import main

    main(sys.argv[1:])
except BaseException as error:  # noqa: BLE001  a bug of ours is a line on stderr, never the host's problem
    if sys.stderr is not None:
        sys.stderr.write(f"gapless: event lost, please report this: {error!r}\n")
        sys.stderr.flush()
finally:
    os._exit(0)  # whatever happened above, and without the time that the interpreter takes to tidy up
