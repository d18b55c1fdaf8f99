#include "wam/data/relative_action.h"

#include "wam/base/check.h"

namespace wam::data {
namespace {

template <typename T, typename Combine>
void for_relative(const RelativeDims& dims, std::span<const T> state, std::span<T> rows,
                  Combine combine) {
  WAM_CHECK(!dims.empty() && rows.size() % dims.size() == 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t from = dims[i % dims.size()];
    if (from < 0) continue;
    WAM_CHECK(from < std::ssize(state));
    rows[i] = combine(rows[i], state[static_cast<size_t>(from)]);
  }
}

}  // namespace

void make_relative(const RelativeDims& dims, std::span<const float> state, std::span<float> rows) {
  for_relative<float>(dims, state, rows, [](float x, float s) { return x - s; });
}

void make_absolute(const RelativeDims& dims, std::span<const double> state,
                   std::span<double> rows) {
  for_relative<double>(dims, state, rows, [](double x, double s) { return x + s; });
}

}  // namespace wam::data
