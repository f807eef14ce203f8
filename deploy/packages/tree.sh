# shellcheck shell=bash disable=SC2034  # those who source it use its variables
# Sourced by deploy/bundle and deploy/packages/*: what every package holds, the same on every run.
#
# PENSTOCK_BUILD_DIR        folder of the build (default: build)
# PENSTOCK_PACKAGE_DIR      where packages go (default: build/packages)
# PENSTOCK_PACKAGE_VERSION  version of the packages (default: the router's)
# SOURCE_DATE_EPOCH         date of every file in a package (default: that of the last commit)
BIN=${PENSTOCK_BUILD_DIR:-build}/bin
OUT=${PENSTOCK_PACKAGE_DIR:-build/packages}
# What an operator uses.
OPERATOR_PROGRAMS=(penstock penstock-launcher penstock-router penstock-shard penstock-bench penstock-replay
  penstock-split penstock-plan)
# Other names of a program. A program reads the name by which it is started.
ALIASES=(text-generation-launcher=penstock-launcher text-generation-router=penstock-router)
SHARE=share/penstock
DOCUMENTS=share/doc/penstock

umask 022
export LC_ALL=C TZ=UTC

set_version_and_date() { # -> VERSION, SOURCE_DATE_EPOCH
  [ -x "$BIN/penstock-router" ] || { echo "$BIN/penstock-router is missing" >&2; return 1; }
  VERSION=${PENSTOCK_PACKAGE_VERSION:-$("$BIN/penstock-router" --version | grep -o '[0-9][0-9.]*' | head -n 1)}
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct)} || {
    echo "no git history here: set SOURCE_DATE_EPOCH to a date in seconds" >&2
    return 1
  }
  export VERSION SOURCE_DATE_EPOCH
}

put_program() { # NAME FOLDER
  [ -x "$BIN/$1" ] || { echo "$BIN/$1 is missing" >&2; return 1; }
  strip -o "$2/$1" "$BIN/$1"
}

put_aliases() { # FOLDER, which holds the programs
  local alias
  for alias in "${ALIASES[@]}"; do
    [ ! -e "$1/${alias#*=}" ] || ln -s "${alias#*=}" "$1/${alias%%=*}"
  done
}

put_demo_model() { # PREFIX
  mkdir -p "$1/$SHARE"
  cp -r demo/model "$1/$SHARE/demo-model"
}

put_manuals() { # PREFIX PROGRAM...
  local prefix=$1 name alias
  shift
  mkdir -p "$prefix/share/man/man1"
  for name in "$@"; do
    if [ "$name" = penstock ]; then
      "$BIN/penstock" man
    else
      python3 deploy/packages/manual.py "$BIN/$name" "$VERSION"
    fi | gzip -9n >"$prefix/share/man/man1/$name.1.gz"
  done
  for alias in "${ALIASES[@]}"; do
    ln -s "${alias#*=}.1.gz" "$prefix/share/man/man1/${alias%%=*}.1.gz"
  done
}

put_completions() { # PREFIX
  local prefix=$1/share
  mkdir -p "$prefix/bash-completion/completions" "$prefix/zsh/vendor-completions" "$prefix/fish/vendor_completions.d"
  "$BIN/penstock" completion bash >"$prefix/bash-completion/completions/penstock"
  "$BIN/penstock" completion zsh >"$prefix/zsh/vendor-completions/_penstock"
  "$BIN/penstock" completion fish >"$prefix/fish/vendor_completions.d/penstock.fish"
}

same_dates_and_modes() { # FOLDER: what does not depend on the machine
  chmod -R u=rwX,go=rX "$1"
  find "$1" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
}

pack_tree() { # FOLDER ARCHIVE
  same_dates_and_modes "$1"
  tar -C "$(dirname "$1")" -c --format=gnu --sort=name --owner=0 --group=0 --numeric-owner "$(basename "$1")" |
    gzip -9n >"$2"
  say_size "$2"
}

say_size() { # FILE
  local bytes
  bytes=$(stat -c %s "$1")
  printf '    %s: %d.%d MiB\n' "$1" $((bytes >> 20)) $(((bytes * 10 >> 20) % 10))
}
