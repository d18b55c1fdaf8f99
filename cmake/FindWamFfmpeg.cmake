# PkgConfig::FFMPEG: the system's libraries, or with WAM_STATIC_FFMPEG the small static build that
# tools/build_ffmpeg.sh leaves in .deps, for binaries that move to machines without FFmpeg.
option(WAM_STATIC_FFMPEG "Link the static FFmpeg of tools/build_ffmpeg.sh" OFF)
set(wam_ffmpeg_modules libavformat libavcodec libavutil libswscale)
if(WAM_STATIC_FFMPEG)
  set(wam_ffmpeg_pkgconfig ${CMAKE_SOURCE_DIR}/.deps/ffmpeg/lib/pkgconfig)
  if(NOT EXISTS ${wam_ffmpeg_pkgconfig}/libavcodec.pc)
    message(FATAL_ERROR "[configure] WAM_STATIC_FFMPEG=ON, but ${wam_ffmpeg_pkgconfig} holds no "
                        "libavcodec.pc. Run tools/build_ffmpeg.sh first.")
  endif()
  set(wam_saved_path "$ENV{PKG_CONFIG_PATH}")
  set(ENV{PKG_CONFIG_PATH} "${wam_ffmpeg_pkgconfig}:${wam_saved_path}")
  set(PKG_CONFIG_ARGN --static)
  pkg_check_modules(FFMPEG_STATIC REQUIRED IMPORTED_TARGET ${wam_ffmpeg_modules})
  unset(PKG_CONFIG_ARGN)
  set(ENV{PKG_CONFIG_PATH} "${wam_saved_path}")
  # Its own prefix: the answers for the system's libraries are cached under the other.
  add_library(PkgConfig::FFMPEG INTERFACE IMPORTED)
  target_link_libraries(PkgConfig::FFMPEG INTERFACE PkgConfig::FFMPEG_STATIC)
else()
  pkg_check_modules(FFMPEG REQUIRED IMPORTED_TARGET ${wam_ffmpeg_modules})
endif()
