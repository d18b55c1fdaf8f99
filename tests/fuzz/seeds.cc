#include <limits>

#include "tests/fuzz/targets.h"
#include "wam/base/check.h"
#include "wam/base/files.h"
#include "wam/data/parquet_writer.h"
#include "wam/tensor/safetensors_writer.h"
#include "wam/tensor/torch_zip_fixture.h"
#include "wam/train/tfevents.h"

namespace wam::fuzz {
namespace {

HostTensor counted(DType dtype, const Shape& shape) {
  HostTensor tensor = HostTensor::zeros(DType::kF32, shape);
  float next = 0;
  for (float& value : tensor.as<float>()) value = next++;
  return tensor.to(dtype);
}

std::map<std::string, HostTensor> small_weights() {
  return {{"blocks.0.weight", counted(DType::kBF16, Shape{2, 3})},
          {"head.bias", counted(DType::kF32, Shape{4})},
          {"step", counted(DType::kI64, Shape{})},
          {"empty", HostTensor(DType::kF16, Shape{0, 5})}};
}

std::string bytes_of(const std::filesystem::path& path) { return read_text_file(path); }

std::string length_prefix(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

std::vector<std::string> safetensors_seeds() {
  const TempDir folder;
  write_safetensors(folder / "a.safetensors", small_weights(), {{"format", "pt"}});
  const std::string good = bytes_of(folder / "a.safetensors");
  const auto with_header = [](const std::string& json, size_t data) {
    return length_prefix(json.size()) + json + std::string(data, '\1');
  };
  return {
      good,
      good.substr(0, good.size() - 3),
      length_prefix(uint64_t{1} << 63) + "{}",
      length_prefix(std::numeric_limits<uint64_t>::max()) + "{}",
      with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                  12),
      with_header(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
                  8),
      with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9223372036854775807]}})", 8),
      with_header(R"({"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3)};
}

std::vector<std::string> index_seeds() {
  return {R"({"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00001.safetensors"}})",
          R"({"weight_map":{"a":"../outside.safetensors"}})", R"({"weight_map":[]})"};
}

std::vector<std::string> torch_zip_seeds() {
  const std::string hostile =
      PickleAssembler().global("os", "system").text("true").op("\x85R").stop();
  const std::string far = PickleAssembler().tensor("FloatStorage", "0", 4, 3, {4}, {1}).stop();
  return {torch_zip_bytes(small_weights()), torch_zip_bytes(small_weights(), "model"),
          zip_bytes(torch_entries(hostile, {})),
          zip_bytes(torch_entries(far, {std::string(16, '\0')})),
          zip_bytes(torch_entries(far, {std::string(16, '\0')}), {.zip64 = true})};
}

std::vector<std::string> pickle_seeds() {
  return {PickleAssembler().tensor("BFloat16Storage", "0", 6, 0, {2, 3}, {3, 1}).stop(),
          PickleAssembler().op("}q\1").text("model").integer(1).op("s").stop(),
          PickleAssembler().op("]q\1h\1a").stop(),
          PickleAssembler().global("builtins", "eval").text("1").op("\x85R").stop(),
          PickleAssembler("\x80\x04").real(1.5).op("\x94").stop()};
}

std::vector<std::string> parquet_seeds() {
  const TempDir folder;
  std::vector<std::string> all;
  for (const auto compression : {data::ParquetWriterOptions::Compression::kNone,
                                 data::ParquetWriterOptions::Compression::kSnappy}) {
    const std::vector<data::ParquetColumnData> columns = {
        {"timestamp", counted(DType::kF32, Shape{3})},
        {"index", counted(DType::kI64, Shape{3})},
        {"action", counted(DType::kF64, Shape{3, 2})},
        {"task", data::ParquetText{"a", "", "b"}},
        {"tasks", data::ParquetTextList{{"a"}, {}, {"b", "c"}}},
        {"image", data::ParquetImages{{true, "x", "p"}, {false, "", "q"}, {true, "", ""}}}};
    data::ParquetWriter writer(folder / "t.parquet",
                               {.compression = compression, .metadata = {{"k", "v"}}});
    writer.write_row_group(columns);
    writer.finish();
    all.push_back(bytes_of(folder / "t.parquet"));
  }
  all.push_back(all.front().substr(0, all.front().size() - 9) + "PAR1");
  return all;
}

std::vector<std::string> json_seeds() {
  return {
      "{\"episode_index\":0,\"tasks\":[\"pick\"],\"length\":416}\n\n{\"task_index\":0,\"task\":"
      "\"pick\"}\n",
      "{\"episode_index\":1e300,\"length\":-1}\n{\"task_index\":18446744073709551615}",
      "{\"stats\":[[1,2.5],[true,3e-300]],\"n\":null}\n", std::string(300, '[')};
}

std::vector<std::string> yaml_seeds() {
  return {R"(preset: libero_sim
embodiment_tag: robot
views: [image, wrist]
view_height: 64
view_width: 64
tiling: side_by_side
color_jitter: {brightness: 0.1, hue: 0.05}
prompt_template: "A robot {i}"
state: [arm, "joint_position[0:3,5:]"]
action: [{key: arm, column: action, indices: "0:7", normalization: q99}]
relative_action_keys: [arm]
action_horizon: 8
video_in_chunk_offsets: [0, 1, 2, 3, 4, 5, 6, 7]
)", "preset: sim_table\n", "libero_sim",
          "a: &x [1, *x]\n",     "&a {<<: *a}",         std::string(200, '[')};
}

std::vector<std::string> tfevents_seeds() {
  const TempDir folder;
  std::filesystem::path path;
  {
    train::TfEventsWriter writer(folder.path(), 3);
    const train::TaggedScalar scalars[] = {{"loss", 0.5}, {"lr", 1e-5}};
    writer.add_scalars(4, scalars);
    writer.add_image(4, "sample", "not a png", 2, 2, 3);
    path = writer.path();
  }
  const std::string good = bytes_of(path);
  return {good, good.substr(0, good.size() - 5), std::string(12, '\xff')};
}

}  // namespace

std::vector<std::string> seeds(std::string_view target) {
  if (target == "config_yaml") return yaml_seeds();
  if (target == "json_lines") return json_seeds();
  if (target == "parquet") return parquet_seeds();
  if (target == "pickle") return pickle_seeds();
  if (target == "safetensors") return safetensors_seeds();
  if (target == "safetensors_index") return index_seeds();
  if (target == "tfevents") return tfevents_seeds();
  WAM_CHECK(target == "torch_zip") << target;
  return torch_zip_seeds();
}

}  // namespace wam::fuzz
