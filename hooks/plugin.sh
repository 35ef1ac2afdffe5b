#!/bin/sh
# `plugin.sh SCRIPT ARGUMENT…` runs a script beside it with the interpreter that serves Gapless, else with any: what
# PATH has may be a version manager's shim, which costs more than the hook. launcher.py only finds that interpreter.
# The client ends hooks that it does not wait for with SIGTERM, 1.5 s before it kills them: time to hand the event over.
[ "$1" = launcher.py ] || trap '' TERM
recorded="${GAPLESS_HOME:-$HOME/.gapless}/run/python"
python=
[ -r "$recorded" ] && read -r python <"$recorded"
if [ -x "$python" ]; then
    [ "$1" = launcher.py ] && shift && exec "$python" -I -m service.cli "$@"
else
    python=python3
fi
if ! command -v "$python" >/dev/null 2>&1; then
    echo "gapless: nothing is remembered: there is no python3 on PATH" >&2
    exit 0
fi
script="${0%/*}/$1"
shift
exec "$python" -I -S "$script" "$@"
