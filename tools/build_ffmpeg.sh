#!/usr/bin/env bash
# Builds a small static FFmpeg from the distribution's own source package into .deps/ffmpeg, for
# binaries that move to machines without FFmpeg: `cmake -DWAM_STATIC_FFMPEG=ON` then links it.
# It decodes h264, hevc, av1, vp9, mpeg4, png and mjpeg from mp4, matroska, avi and mpegts files,
# and writes mpeg4, png and mjpeg to mp4 and matroska. Ordinary builds use the system's FFmpeg and
# do not need this.
#
#   tools/build_ffmpeg.sh           LGPL
#   tools/build_ffmpeg.sh --x264    writes h264 too; FFmpeg and the binary are then under the GPL
#
# av1 goes through libdav1d, of which Debian has only the shared library: a moved binary needs it
# beside itself (tools/bundle.sh puts it there).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PREFIX=$PWD/.deps/ffmpeg
readonly WORK=$PWD/.deps/ffmpeg-build
PACKAGES=(g++ make nasm pkg-config xz-utils libdav1d-dev zlib1g-dev)
encoders=mpeg4,png,mjpeg
licence=()

say() { printf 'build_ffmpeg: %s\n' "$*"; }
die() {
  printf 'build_ffmpeg: error: %s\n' "$*" >&2
  exit 1
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

read_arguments() {
  case "${1:-}" in
    "") ;;
    --x264)
      encoders+=,libx264
      licence=(--enable-gpl --enable-libx264)
      PACKAGES+=(libx264-dev)
      ;;
    *) die "unknown argument '$1'; usage: tools/build_ffmpeg.sh [--x264]" ;;
  esac
}

install_packages() {
  local name
  local -a missing=()
  for name in "${PACKAGES[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
      missing+=("$name")
  done
  if [[ ${#missing[@]} != 0 ]]; then
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
      install -y --no-install-recommends "${missing[@]}"
  fi
}

# Source packages are seldom configured. The configured binary sources are copied with `deb` turned
# into `deb-src`, and apt is pointed at the copies and at lists of its own, so that the system's
# stay as they are. The distribution's own small patches are not applied.
fetch_source() {
  local apt=$WORK/apt
  mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/source"
  find /etc/apt/sources.list.d -name '*.sources' -exec cp {} "$apt/parts" \;
  find /etc/apt -maxdepth 2 -name '*.list' -exec cp {} "$apt/parts" \;
  find "$apt/parts" -name '*.sources' -exec sed -i 's/^Types:.*/Types: deb-src/' {} +
  find "$apt/parts" -name '*.list' -exec sed -i '/^deb-src /d; s/^deb /deb-src /' {} +
  local -a options=(-o "Dir::Etc::sourceparts=$apt/parts" -o Dir::Etc::sourcelist=/dev/null
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache="
    -o APT::Sandbox::User=root)
  say "fetching the source package"
  apt-get "${options[@]}" update
  (cd "$apt/source" && apt-get "${options[@]}" source --download-only ffmpeg)
  local archive
  archive=$(find "$apt/source" -name 'ffmpeg_*.orig.tar.xz' | head -n 1)
  [[ -n $archive ]] || die "the source package holds no ffmpeg_*.orig.tar.xz"
  say "unpacking $(basename "$archive")"
  rm -rf "$WORK/source"
  mkdir "$WORK/source"
  tar -xJf "$archive" -C "$WORK/source" --strip-components=1
}

configure() {
  say "configuring"
  (cd "$WORK/source" && ./configure --prefix="$PREFIX" \
    --disable-everything --disable-autodetect --disable-programs --disable-doc --disable-network \
    --disable-avdevice --disable-avfilter --disable-swresample --disable-postproc \
    --enable-static --disable-shared --enable-pic --enable-pthreads --enable-zlib --enable-libdav1d \
    ${licence[@]+"${licence[@]}"} \
    --enable-decoder=h264,hevc,libdav1d,vp9,mpeg4,png,mjpeg \
    --enable-parser=h264,hevc,av1,vp9,mpeg4video,png,mjpeg \
    --enable-demuxer=mov,matroska,avi,mpegts --enable-muxer=mov,mp4,matroska \
    --enable-bsf=h264_mp4toannexb,hevc_mp4toannexb,vp9_superframe,vp9_superframe_split \
    --enable-bsf=av1_frame_split --enable-encoder="$encoders" --enable-protocol=file)
}

main() {
  read_arguments "$@"
  local stamp
  stamp="$encoders $(declare -f configure | cksum)"
  if [[ -e $PREFIX/stamp && $(<"$PREFIX/stamp") == "$stamp" ]]; then
    say "there already: $PREFIX"
    return
  fi
  install_packages
  mkdir -p "$WORK"
  fetch_source
  configure
  say "building"
  make -C "$WORK/source" -j "$(nproc)" --no-print-directory
  rm -rf "$PREFIX"
  make -C "$WORK/source" --no-print-directory install
  printf '%s' "$stamp" >"$PREFIX/stamp"
  rm -rf "$WORK"
  say "done; configure with -DWAM_STATIC_FFMPEG=ON"
}

main "$@"
