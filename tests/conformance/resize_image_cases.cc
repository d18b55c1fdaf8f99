#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

// tests/reference compares with the definition; here the float64 kernel is the reference.
void resize_image_cases(Tables& t) {
  for (const std::string filter : {"bilinear", "bicubic"}) {
    const auto add = [&](const std::string& label, const Shape& shape, int64_t height,
                         int64_t width) {
      // A position near n pixels is rounded to n eps; slopes between pixels are below 4.
      const auto side = static_cast<double>(std::max(shape[-3], shape[-2]));
      t.add({.op = &resize_image_op,
             .label = filter + "_" + label,
             .attrs = {{"height", height}, {"width", width}, {"filter", filter}},
             .inputs = {{.shape = shape,
                         .role = Role::kStat,
                         .fill = {.kind = Fill::Kind::kUniform, .a = 1, .b = 2}}},
             .errors = {elementwise(64 + 8 * side)}});
    };
    add("grow", Shape{1, 3, 4, 2}, 7, 9);
    add("shrink", Shape{2, 2, 33, 31, 3}, 8, 5);
    add("one_pixel", Shape{1, 1, 1}, 3, 2);
    add("to_one", Shape{5, 6, 1}, 1, 1);
  }
  const TensorType picture{DType::kF32, Shape{4, 5, 3}};
  const auto refuse = [&](const char* label, int64_t height, const std::string& filter,
                          const TensorType& type) {
    t.refuse({.op = &resize_image_op,
              .label = label,
              .attrs = {{"height", height}, {"width", int64_t{3}}, {"filter", filter}},
              .inputs = {type}});
  };
  refuse("filter", 2, "nearest", picture);
  refuse("height", 0, "bilinear", picture);
  refuse("type", 2, "bilinear", {DType::kBF16, Shape{4, 5, 3}});
  refuse("dims", 2, "bilinear", {DType::kF32, Shape{4, 5}});
  refuse("no_pixels", 2, "bicubic", {DType::kF32, Shape{0, 5, 3}});
}

}  // namespace wam::conformance
