# SPDX-License-Identifier: BSD-3-Clause
# What a run of quickstart leaves in the system, and how it is taken away; sourced by scripts/quickstart, which has
# say() and die(). /run/NAME/owner holds process number and start time of the script, /run/NAME/processes a line
# 'WHAT PID START' for each process it started.

# A process number alone may be somebody else's by now; with its start time it is not.
start_time() {
  local stat
  stat=$(cat "/proc/$1/stat" 2> /dev/null) || return 1
  read -ra stat <<< "${stat##*) }"
  echo "${stat[19]}"
}

# running PID START: and not only waiting for its parent to notice.
running() {
  [ -n "$2" ] && [ "$(start_time "$1")" = "$2" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2> /dev/null
}

# remember NAME PID: notes what a later clean-up has to end.
remember() { echo "$1 $2 $(start_time "$2")" >> "$run/processes"; }

end_process() {
  local name=$1 pid=$2 started=$3 attempt
  running "$pid" "$started" || return 0
  kill -TERM "$pid" 2> /dev/null || true
  for ((attempt = 0; attempt < 150; ++attempt)); do
    running "$pid" "$started" || return 0
    sleep 0.1
  done
  echo "quickstart: $name (process $pid) did not end within 15 s of SIGTERM; it gets SIGKILL" >&2
  kill -KILL "$pid" 2> /dev/null || true
  for ((attempt = 0; attempt < 50; ++attempt)); do
    running "$pid" "$started" || return 0
    sleep 0.1
  done
}

# take_away NAME: all that the run of this name has left, in the reverse order of its making.
take_away() {
  local name=$1 process pid started side
  if [ -f "/run/$name/processes" ]; then
    while read -r process pid started; do
      end_process "$process" "$pid" "$started"
      # The daemon removes it itself, unless it was killed; the number may have gone to another one since.
      [ "$process" != mayflyd ] || running "$pid" "$(start_time "$pid")" || rm -rf "${RUNTIME_DIRECTORY:-/var/run}/dpdk/mayfly-$pid"
    done < <(tac "/run/$name/processes")
  fi
  for side in a b dp; do
    [ -e "/run/netns/$name-$side" ] || continue
    # A namespace dies in the background; its links are to be gone when this returns.
    ip -n "$name-$side" link del a0 2> /dev/null || true
    ip -n "$name-$side" link del b0 2> /dev/null || true
    ip netns del "$name-$side" || true
  done
  rm -rf "/run/$name"
}

# A run lives while its script does; --keep leaves one on purpose.
lives() {
  local owner started
  read -r owner started 2> /dev/null < "/run/$1/owner" && running "$owner" "$started"
}

name_leftovers() {
  local path other seen=' '
  for path in /run/mayfly-qs-* /run/netns/mayfly-qs-*; do
    [[ $(basename "$path") =~ ^mayfly-qs-([0-9]+)(-(a|b|dp))?$ ]] || continue
    other=${BASH_REMATCH[1]}
    [[ $seen != *" $other "* && $other != "$$" ]] || continue
    seen+="$other "
    if lives "mayfly-qs-$other"; then
      say "another run is under way (mayfly-qs-$other); it is left alone"
    elif [ -e "/run/mayfly-qs-$other/kept" ]; then
      say "an earlier run was kept (mayfly-qs-$other); end it with: scripts/quickstart --stop $other"
    else
      say "an earlier run was killed and left mayfly-qs-$other; remove it with: scripts/quickstart --stop $other"
    fi
  done
}

stop_run() {
  local other=mayfly-qs-$1
  if [ ! -e "/run/$other" ] && ! compgen -G "/run/netns/$other-*" > /dev/null; then
    name_leftovers
    die "--stop $1: there is no run of this number; any other is named above"
  fi
  if lives "$other"; then die "--stop $1: this run is under way; end it with: kill -INT $1"; fi
  take_away "$other"
  say "$other is gone"
}
