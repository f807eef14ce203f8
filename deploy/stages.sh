# Sourced by the scripts of the Makefile: runs named stages and keeps a table of their times.
#
#   stage NAME COMMAND...   announces NAME, runs COMMAND, prints its seconds, returns its status
#   stage_table             prints every stage so far with its time and result
#   PENSTOCK_STAGE_FILE     if set, each stage is also appended there: seconds, status and name
STAGE_NAMES=() STAGE_SECONDS=() STAGE_RESULTS=()

now_us() { local now=${EPOCHREALTIME/[.,]/}; echo "$now"; }

seconds_since() { # start in microseconds -> "12.3"
  local elapsed_ds=$((($(now_us) - $1) / 100000))
  echo "$((elapsed_ds / 10)).$((elapsed_ds % 10))"
}

stage() {
  local name=$1 start status=0 seconds
  shift
  start=$(now_us)
  printf '==> %s\n' "$name"
  "$@" || status=$?
  seconds=$(seconds_since "$start")
  STAGE_NAMES+=("$name") STAGE_SECONDS+=("$seconds") STAGE_RESULTS+=("$status")
  if [ -n "${PENSTOCK_STAGE_FILE:-}" ]; then
    printf '%s\t%s\t%s\n' "$seconds" "$status" "$name" >>"$PENSTOCK_STAGE_FILE"
  fi
  if [ "$status" -eq 0 ]; then
    printf '<== %s: %s s\n' "$name" "$seconds"
  else
    printf '<== %s: failed with status %s after %s s\n' "$name" "$status" "$seconds"
  fi
  return "$status"
}

stage_table() {
  local i result
  printf '\n%-28s %10s  %s\n' stage seconds result
  for i in "${!STAGE_NAMES[@]}"; do
    result=ok
    [ "${STAGE_RESULTS[i]}" -eq 0 ] || result="failed (${STAGE_RESULTS[i]})"
    printf '%-28s %10s  %s\n' "${STAGE_NAMES[i]}" "${STAGE_SECONDS[i]}" "$result"
  done
}
