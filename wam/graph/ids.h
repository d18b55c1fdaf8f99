// Strong numbers of values and nodes; invalid by default.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace wam {

template <typename Tag>
struct Id {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const Id&) const = default;
};

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;

}  // namespace wam

template <typename Tag>
struct std::hash<wam::Id<Tag>> {
  size_t operator()(wam::Id<Tag> id) const { return std::hash<int32_t>{}(id.index); }
};
