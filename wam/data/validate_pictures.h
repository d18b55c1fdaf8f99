// Private to validate*: the pictures of one episode, from videos or image columns.
#pragma once

#include "wam/data/validate_meta.h"
#include "wam/data/video_reader.h"

namespace wam::data {

// Adds the faults of one camera; `num_rows` is the table's, or the meta's if there is no table.
// Returns the number of pictures decoded.
int64_t validate_camera(const MetaView& meta, const Episode& episode, const Feature& camera,
                        int64_t num_rows, const ValidateOptions& options, VideoReader& videos,
                        FaultList& faults);

}  // namespace wam::data
