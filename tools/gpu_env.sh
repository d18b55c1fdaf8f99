# Sourced: puts the folders of the CUDA libraries a wam binary needs on LD_LIBRARY_PATH, looking at
# the toolkit and at the wheels of the python3 on PATH. Says what it cannot find.
wam_roots="${CUDA_HOME:-/usr/local/cuda} $(python3 -c 'import site; print(*site.getsitepackages())' 2>/dev/null)"
for wam_lib in libcublasLt.so.13 libcudnn.so.9 libnvrtc.so.13 libnccl.so.2 libcupti.so.13; do
  # shellcheck disable=SC2086
  wam_file=$(find -L $wam_roots -name "$wam_lib" -print -quit 2>/dev/null)
  if [ -n "$wam_file" ]; then
    case ":${LD_LIBRARY_PATH:-}:" in
      *":${wam_file%/*}:"*) ;;
      *) LD_LIBRARY_PATH="${wam_file%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
    esac
  else
    echo "gpu_env: $wam_lib not found under $wam_roots" >&2
  fi
done
export LD_LIBRARY_PATH
unset wam_roots wam_lib wam_file
