#!/usr/bin/env bash
# Brings what the program needs: system packages where it may, Python packages into .venv.
#   scripts/setup.sh run    to use the program
#   scripts/setup.sh test   also what the tests and pictures need
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-run}

# "a|b": the same library under its older and its newer name.
run_packages=(python3-venv "libglib2.0-0|libglib2.0-0t64" libwayland-cursor0 libwayland-egl1 libegl1 libgl1 libxkbcommon0 libxkbcommon-x11-0 libdbus-1-3 libfontconfig1 libvulkan1
  libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-image0 libxcb-render-util0 libxcb-xinerama0
  libxcb-randr0 libxcb-shape0 libxcb-xkb1)
# A Vulkan driver that runs on the processor: for machines without a GPU, and for the tests.
software_gpu=(mesa-vulkan-drivers)
# A relay, for the tests of connections that need one.
test_packages=(coturn)
# Software of others that rooms, the API and the kernels are tested with; what is there under another name counts, too.
foreign_programs=(tests/e2e/peerjs tests/e2e/agents tests/engine/translate)
foreign_packages() {
  command -v npm >/dev/null || echo nodejs npm
  command -v chromium >/dev/null || command -v google-chrome >/dev/null || echo "chromium|chromium-browser"
}

installed() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

missing_packages() {
  local names name
  for names in "$@"; do
    IFS='|' read -ra names <<<"$names"
    for name in "${names[@]}"; do installed "$name" && continue 2; done
    printf '%s ' "$(known_of "${names[@]}")"
  done
}

# The first name this system's package lists know, else the first.
known_of() {
  local name
  for name in "$@"; do
    apt-cache show "$name" >/dev/null 2>&1 && { echo "$name"; return; }
  done
  echo "$1"
}

install_packages() {
  local missing prefix=()
  missing=$(missing_packages "$@")
  [ -z "${missing// /}" ] && return 0
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then prefix=(sudo); else
      echo "These system packages are missing and cannot be installed from here:" >&2
      echo "  $missing" >&2
      echo "Ask an administrator to run:  apt-get install $missing" >&2
      exit 1
    fi
  fi
  "${prefix[@]}" apt-get update -qq
  missing=$(missing_packages "$@")
  echo "Installing system packages: $missing"
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive "${prefix[@]}" apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

find_python() {
  for name in python3.11 python3.12 python3.13 python3; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      echo "$name"; return 0
    fi
  done
  echo "Python 3.11 or newer is needed. On Debian 12: apt-get install python3 python3-venv" >&2
  exit 1
}

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
  packages=("${run_packages[@]}")
  if [ "$mode" = test ] || ! ls /dev/dri/renderD* /dev/nvidia0 >/dev/null 2>&1; then packages+=("${software_gpu[@]}"); fi
  # shellcheck disable=SC2207
  [ "$mode" = test ] && packages+=("${test_packages[@]}" $(foreign_packages))
  install_packages "${packages[@]}"
else
  echo "No apt here: a Vulkan driver and the libraries of Qt (libEGL, libxkbcommon, xcb-util) must be there already."
fi

extra=""; [ "$mode" = test ] && extra="[dev]"
stamp=".venv/.ready-$mode-$(cat pyproject.toml scripts/setup.sh "${foreign_programs[@]/%//package.json}" | cksum | cut -d' ' -f1)"
[ -e "$stamp" ] && exit 0
python=$(find_python)
[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "Installing Python packages into .venv"
.venv/bin/python -m pip install -q --disable-pip-version-check -e ".$extra" 2> >(grep -v WARNING >&2)
if [ "$mode" = test ]; then
  for folder in "${foreign_programs[@]}"; do
    echo "Installing what $folder lists, by npm"
    # Tools that come as one package a platform have no lock that npm takes everywhere; theirs are pinned by version.
    how=ci; [ -e "$folder/package-lock.json" ] || how="install --no-package-lock"
    # shellcheck disable=SC2086
    (cd "$folder" && npm $how --silent --no-audit --no-fund) || echo "npm brings nothing here: tests with it will be skipped." >&2
  done
fi
rm -f .venv/.ready-"$mode"-*
touch "$stamp"
