#!/usr/bin/env bash
# Packs binaries of a build tree with the shared libraries they need, for a machine that lacks them:
#
#   tools/bundle.sh OUTPUT.tar.xz [BINARY...]      default binary: build/wam
#
# Unpacked anywhere, a binary finds its libraries in lib/ beside itself. Left out are the C and C++
# runtimes, which must not be older there than here, and CUDA's libraries, which go with the driver
# there. -DWAM_STATIC_FFMPEG=ON makes a bundle much smaller.
set -euo pipefail

die() {
  printf 'bundle: error: %s\n' "$*" >&2
  exit 1
}

[[ $# -ge 1 && $1 == *.tar.xz ]] || die "usage: tools/bundle.sh OUTPUT.tar.xz [BINARY...]"
output=$1
shift
[[ $# -ge 1 ]] || set -- "$(dirname "${BASH_SOURCE[0]}")/../build/wam"

readonly RUNTIMES='^(linux-vdso|ld-linux.*|lib(c|m|dl|pthread|rt|resolv|util|stdc\+\+|gcc_s))\.so'
readonly CUDA='^lib(cuda|cudart|cublas|cublasLt|cudnn|nccl|nvrtc|nvJitLink)[._]'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/lib"
for binary in "$@"; do
  [[ -f $binary && -x $binary ]] || die "$binary is no binary. Run make build first."
  cp "$binary" "$folder/"
  listing=$(ldd "$binary")
  if grep -F 'not found' <<<"$listing" >&2; then die "$binary: a library is not there"; fi
  while read -r name path; do
    [[ $name =~ $RUNTIMES || $name =~ $CUDA || -e $folder/lib/$name ]] ||
      cp -L "$path" "$folder/lib/$name"
  done < <(awk '$2 == "=>" { print $1, $3 }' <<<"$listing")
done
if command -v strip >/dev/null; then
  find "$folder" -type f -exec chmod u+w {} + -exec strip --strip-unneeded {} +
fi
mkdir -p "$(dirname "$output")"
tar -C "$folder" -cf - . | xz -T0 -6 >"$output"
printf 'bundle: %s: %d libraries, %s unpacked, %s packed\n' "$output" \
  "$(find "$folder/lib" -type f | wc -l)" "$(du -sh "$folder" | cut -f 1)" \
  "$(du -h "$output" | cut -f 1)"
