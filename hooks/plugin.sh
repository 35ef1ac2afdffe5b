#!/bin/sh
# `plugin.sh SCRIPT ARGUMENT…` runs a script beside it with the interpreter that serves Gapless, else with any: what
# PATH has may be a version manager's shim, which costs more than the hook.
recorded="${GAPLESS_HOME:-$HOME/.gapless}/run/python"
python=
[ -r "$recorded" ] && read -r python <"$recorded"
[ -x "$python" ] || python=python3
if ! command -v "$python" >/dev/null 2>&1; then
    echo "gapless: nothing is remembered: there is no python3 on PATH" >&2
    exit 0
fi
script="${0%/*}/$1"
shift
exec "$python" -I -S "$script" "$@"
