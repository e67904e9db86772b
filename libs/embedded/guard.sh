#!/bin/sh
# guard.sh SIGNAL GRACE_SECONDS COMMAND [ARGUMENT…]
#
# Becomes COMMAND (same process id), and leaves a watcher behind in its process group that holds the read end of a pipe
# from whoever started it. The kernel closes that pipe however the starter ends, kill -9 included; the watcher then sends
# SIGNAL, waits, and kills what is left of the group. A signal handler in the starter could not promise that.
signal=$1 grace=$2
shift 2
exec 3<&0 </dev/null
(
  while read -r _; do :; done <&3
  kill -s "$signal" $$
  left=$((grace * 10))
  while [ "$left" -gt 0 ] && kill -0 $$; do
    sleep 0.1
    left=$((left - 1))
  done
  kill -s KILL -- "-$$"
) >/dev/null 2>&1 &
exec 3<&-
exec "$@"
