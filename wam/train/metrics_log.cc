#include "wam/train/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "wam/base/check.h"
#include "wam/base/file_descriptor.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"

namespace wam::train {
namespace {

namespace fs = std::filesystem;
// Keeps the fields in the order of writing.
using Json = nlohmann::ordered_json;

constexpr size_t kMaxLineBytes = size_t{1} << 20;

Json to_json(const MetricValue& value) {
  const double* real = std::get_if<double>(&value);
  if (real == nullptr || std::isfinite(*real)) {
    return std::visit([](const auto& v) { return Json(v); }, value);
  }
  return std::isnan(*real) ? "nan" : *real > 0 ? "inf" : "-inf";
}

// Nothing for lists, objects and null.
std::optional<MetricValue> from_json(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer() && !json.is_number_unsigned()) return json.get<int64_t>();
  if (json.is_number_unsigned() && json.get<uint64_t>() <= INT64_MAX) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  if (text == "nan") return NAN;
  if (text == "inf") return INFINITY;
  if (text == "-inf") return -INFINITY;
  return text;
}

// Nothing if the line is no record. Deep nesting is cut off before it is built.
std::optional<MetricsRecord> parse_line(std::string_view line) {
  if (line.size() > kMaxLineBytes) return std::nullopt;
  const auto is_flat = [](int depth, Json::parse_event_t, Json&) { return depth <= 1; };
  const Json json = Json::parse(line, is_flat, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer())
    return std::nullopt;
  MetricsRecord record{.step = json["step"].get<int64_t>()};
  for (const auto& [key, value] : json.items()) {
    if (key == "step") continue;
    std::optional<MetricValue> parsed = from_json(value);
    if (!parsed) return std::nullopt;
    record.fields.emplace_back(key, std::move(*parsed));
  }
  return record;
}

using LineVisitor = std::function<void(std::string_view line, MetricsRecord record)>;

// Visits the finished lines of the file.
void for_each_line(const MappedFile& file, const LineVisitor& visit) {
  std::string_view rest = file.text();
  for (int64_t number = 1;; ++number) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return;
    const std::string_view line = rest.substr(0, end);
    std::optional<MetricsRecord> record = parse_line(line);
    if (!record) {
      throw DataError({.where = file.path().string() + ": line " + std::to_string(number),
                       .what = "not a record of metrics",
                       .got = quote(line),
                       .expected = "a JSON object of numbers and texts with an integer \"step\"",
                       .remedy = "Repair or remove the line, or move the file away."});
    }
    visit(line, std::move(*record));
    rest.remove_prefix(end + 1);
  }
}

void refuse_existing(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size == 0) return;
  throw DataError({.where = path.string(),
                   .what = "metrics of an earlier run are there",
                   .remedy = "Resume that run or choose another folder."});
}

void remove_later_lines(const fs::path& path, int64_t resumed_step) {
  if (!fs::exists(path)) return;
  std::string kept;
  const MappedFile file(path);
  for_each_line(file, [&](std::string_view line, const MetricsRecord& record) {
    if (record.step <= resumed_step) kept.append(line).append("\n");
  });
  if (kept.size() != file.size()) write_file_atomic(path, kept);
}

const MetricValue* find(const MetricsRecord& record, const std::string& key) {
  for (const auto& [name, value] : record.fields) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace

std::optional<double> MetricsRecord::number(const std::string& key) const {
  const MetricValue* value = find(*this, key);
  if (value == nullptr) return std::nullopt;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<std::string> MetricsRecord::text(const std::string& key) const {
  const MetricValue* value = find(*this, key);
  if (value == nullptr || !std::holds_alternative<std::string>(*value)) return std::nullopt;
  return std::get<std::string>(*value);
}

MetricsLog::MetricsLog(fs::path path, std::optional<int64_t> resumed_step)
    : path_(std::move(path)) {
  if (resumed_step) {
    remove_later_lines(path_, *resumed_step);
  } else {
    refuse_existing(path_);
  }
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw_io_error(path_, "cannot write", errno);
}

MetricsLog::~MetricsLog() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsLog::write(const MetricsRecord& record) {
  const std::string line = metrics_line(record) + "\n";
  const int error = write_all(fd_, line.data(), line.size());
  if (error != 0) throw_io_error(path_, "cannot write", error);
}

std::string metrics_line(const MetricsRecord& record) {
  Json json;
  json["step"] = record.step;
  for (const auto& [key, value] : record.fields) {
    WAM_CHECK(!json.contains(key)) << "metric given twice: " << quote(key);
    json[key] = to_json(value);
  }
  return json.dump();
}

std::vector<MetricsRecord> read_metrics_log(const fs::path& path) {
  std::vector<MetricsRecord> records;
  for_each_line(MappedFile(path), [&](std::string_view, MetricsRecord record) {
    records.push_back(std::move(record));
  });
  return records;
}

}  // namespace wam::train
