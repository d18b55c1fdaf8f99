#!/usr/bin/env bash
# Installs what wam.cpp needs: system packages by apt, and, where no system Arrow is found, a pinned
# pyarrow wheel in the project-local virtual environment .venv (its C++ headers and libraries are
# used; no Python runs in the product). Does nothing where all is there. Tested on Debian 12;
# Ubuntu 24.04 is handled but untested.
#
#   tools/setup.sh            install what is missing
#   tools/setup.sh --check    say what is missing, install nothing, exit 1 if something is
#
# Environment: WAM_ARROW=SYSTEM|WHEEL demands one source of Arrow, as the CMake option does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PYARROW_VERSION=25.0.0
readonly CUDNN_FRONTEND_VERSION=1.32.0
readonly VENV=.venv

# Kept in step with cmake/WamDependencies.cmake; docs/dependencies.md says why each is there.
PACKAGES=(g++ cmake ninja-build make git pkg-config ccache lld python3 python3-venv
  libdnnl-dev libavcodec-dev libavformat-dev libavutil-dev libswscale-dev
  libsentencepiece-dev libutf8proc-dev
  libspdlog-dev libfmt-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev
  libopenmpi-dev openmpi-bin libpng-dev libjpeg-dev libxxhash-dev zlib1g-dev
  libgtest-dev libbenchmark-dev)

check_only=false

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: error: %s\n' "$*" >&2
  exit 1
}

read_distribution() {
  distribution=unknown
  [[ -r /etc/os-release ]] || return 0
  distribution=$(. /etc/os-release && printf '%s-%s' "${ID:-unknown}" "${VERSION_ID:-}")
}

# Every name above is the same in Debian 12 and Ubuntu 24.04; what differs goes here.
adapt_packages() {
  case "$distribution" in
    debian-12*) ;;
    ubuntu-24.04)
      say "Ubuntu 24.04 is untested; several packages are in its 'universe' component" ;;
    *) say "$distribution is untested; trying Debian 12's package names" ;;
  esac
}

missing_packages() {
  local installed name
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${PACKAGES[@]}" 2>/dev/null |
    awk '$2 == "installed" { print $1 }' || true)
  for name in "${PACKAGES[@]}"; do
    grep -qxF -- "$name" <<<"$installed" || printf '%s\n' "$name"
  done
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "not root and no sudo; run as root: $*"
  fi
}

install_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no apt here; make sure these are installed: ${PACKAGES[*]}"
    return
  fi
  mapfile -t missing < <(missing_packages)
  if [[ ${#missing[@]} == 0 ]]; then
    say "system packages: all ${#PACKAGES[@]} there"
    return
  fi
  if $check_only; then
    say "system packages missing: ${missing[*]}"
    incomplete=true
    return
  fi
  say "installing ${#missing[@]} of ${#PACKAGES[@]} system packages: ${missing[*]}"
  local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300
    -o Acquire::Retries=3)
  as_root "${apt[@]}" update
  as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}

has_system_arrow() {
  local prefix
  local -a prefixes
  IFS=: read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}" /usr /usr/local; do
    if [[ -n $prefix ]] && compgen -G "$prefix/lib*/cmake/Arrow/ArrowConfig.cmake" >/dev/null &&
      compgen -G "$prefix/lib*/cmake/Parquet/ParquetConfig.cmake" >/dev/null; then
      return 0
    fi
    if [[ -n $prefix ]] && compgen -G "$prefix/lib/*/cmake/Arrow/ArrowConfig.cmake" >/dev/null &&
      compgen -G "$prefix/lib/*/cmake/Parquet/ParquetConfig.cmake" >/dev/null; then
      return 0
    fi
  done
  return 1
}

# The distribution's own python3 first: one from elsewhere on PATH may lack ensurepip.
make_venv() {
  local python
  if [[ -x $VENV/bin/python && $("$VENV/bin/python" -m pip --version 2>/dev/null) == pip* ]]; then
    return
  fi
  for python in /usr/bin/python3 "$(command -v python3 || true)"; do
    if [[ -x $python ]] && "$python" -c 'import ensurepip, venv' 2>/dev/null; then
      say "making $VENV with $python"
      "$python" -m venv --clear "$VENV"
      return
    fi
  done
  die "no python3 with the venv module found. Install python3-venv."
}

wheel_there() { compgen -G "$VENV/lib/python3*/site-packages/$1-$2.dist-info/RECORD" >/dev/null; }

# usage: install_wheel NAME DIST_NAME VERSION (DIST_NAME as the wheel's metadata folder spells it)
install_wheel() {
  if wheel_there "$2" "$3"; then
    say "$1 $3: there"
    return
  fi
  if $check_only; then
    say "$1 $3: missing from $VENV"
    incomplete=true
    return
  fi
  make_venv
  say "installing $1 $3 into $VENV"
  "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps --no-compile \
    --only-binary :all: "$1==$3" && wheel_there "$2" "$3"
}

install_arrow() {
  if [[ ${WAM_ARROW:-AUTO} != WHEEL ]] && has_system_arrow; then
    say "Arrow: a system installation is there"
    return
  fi
  if [[ ${WAM_ARROW:-AUTO} == SYSTEM ]]; then
    die "WAM_ARROW=SYSTEM, but no ArrowConfig.cmake and ParquetConfig.cmake were found. Install" \
      "Arrow's C++ packages or name their prefix in CMAKE_PREFIX_PATH."
  fi
  install_wheel pyarrow pyarrow "$PYARROW_VERSION" ||
    die "pyarrow $PYARROW_VERSION could not be installed into $VENV; see pip's message above"
}

# cuDNN's C++ front end is headers only and not part of the toolkit. Without it only the CUDA
# build's attention and convolutions are left out, so a failure here does not end the set-up.
install_cuda_headers() {
  if ! command -v "${CUDACXX:-nvcc}" >/dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
    say "CUDA: no nvcc found, left out"
    return
  fi
  install_wheel nvidia-cudnn-frontend nvidia_cudnn_frontend "$CUDNN_FRONTEND_VERSION" ||
    say "warning: the cuDNN front end could not be installed; the CUDA build goes without it"
}

main() {
  incomplete=false
  case "${1:-}" in
    "") ;;
    --check) check_only=true ;;
    *) die "unknown argument '$1'; usage: tools/setup.sh [--check]" ;;
  esac
  read_distribution
  adapt_packages
  install_packages
  install_arrow
  install_cuda_headers
  if $incomplete; then exit 1; fi
  say "done"
}

main "$@"
