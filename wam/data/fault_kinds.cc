#include <array>

#include "wam/data/validate.h"

namespace wam::data {
namespace {

constexpr std::array<FaultKind, 54> kKinds = {{
    {"camera-absent", "a camera of info.json has no video in any episode"},
    {"camera-shape", "a camera's shape in info.json is not that of a picture"},
    {"column-default", "info.json does not list one of LeRobot's default columns"},
    {"column-dtype", "a column holds another type than info.json says"},
    {"column-missing", "a column of info.json is not in the table"},
    {"column-type", "a column is neither numbers nor text"},
    {"column-unreadable", "a column is damaged, has nulls, or lists of different lengths"},
    {"column-width", "rows of a column have another width than info.json says"},
    {"count-mismatch", "a total in info.json is not what the meta lists"},
    {"dataset-empty", "no episodes"},
    {"dataset-missing", "no such folder, or no meta/info.json in it"},
    {"dim-clipped", "a dim lies at its extreme in many rows"},
    {"dim-constant", "a dim never changes"},
    {"episode-discarded", "episodes listed in discarded_episode_indices"},
    {"episode-duplicate", "an episode_index given twice"},
    {"episode-gap", "episode indexes are not 0, 1, 2, ..."},
    {"episode-index", "a table holds rows of another episode"},
    {"episode-line-invalid", "a line of episodes.jsonl cannot be used"},
    {"file-unused", "files that the meta does not list"},
    {"frame-index", "frame_index does not count 0, 1, 2, ..."},
    {"index-gap", "index does not count 1 by 1"},
    {"info-invalid", "info.json cannot be used"},
    {"meta-missing", "a file of the meta folder is missing"},
    {"modality-column", "modality.json names a column that info.json does not list"},
    {"modality-invalid", "modality.json cannot be used"},
    {"path-outside", "a path leaves the dataset's folder"},
    {"picture-black", "black pictures"},
    {"picture-damaged", "a picture cannot be decoded, or is of another size"},
    {"picture-frozen", "pictures that do not change for a second"},
    {"stats-invalid", "a file of statistics cannot be used"},
    {"stats-mismatch", "statistics that do not belong to the data"},
    {"stats-missing", "no statistics of the whole dataset"},
    {"stats-width", "statistics of another width than their column"},
    {"table-missing", "a parquet file is missing"},
    {"table-rows", "a table has another number of rows than episodes.jsonl says"},
    {"table-unreadable", "a parquet file is cut short or no parquet file"},
    {"task-duplicate", "a task_index given twice"},
    {"task-line-invalid", "a line of tasks.jsonl cannot be used"},
    {"task-missing", "rows name a task that tasks.jsonl does not list"},
    {"task-unlisted", "episodes.jsonl names a task that tasks.jsonl does not list"},
    {"timestamp-jitter", "timestamps are not row / fps"},
    {"timestamp-offset", "timestamps do not start at 0"},
    {"timestamp-order", "timestamps do not ascend"},
    {"value-nonfinite", "NaN or infinity"},
    {"value-outlier", "values far outside q01 to q99"},
    {"version-unknown", "a LeRobot version that is not read"},
    {"video-codec", "a video of another codec than info.json says"},
    {"video-cut", "an mp4 that was cut short or never finished"},
    {"video-empty", "a video of zero bytes"},
    {"video-fps", "a video of another frame rate than info.json says"},
    {"video-frames", "a video with fewer or more frames than the table has rows"},
    {"video-missing", "a video is missing"},
    {"video-size", "a video of another picture size than info.json says"},
    {"video-unreadable", "a file that is no readable video"},
}};

}  // namespace

std::span<const FaultKind> fault_kinds() { return kKinds; }

}  // namespace wam::data
