// Parameters of a model: their names in checkpoints, shapes, initial values, and where they lie.
// Parameters lie in one flat buffer per transformer block (region "<set>.block.<i>", or
// "<set>.root" outside blocks), each aligned to kParamAlignment elements, in order of definition.
// Gradients, moments and master weights use buffers of the same layout under derived region names,
// so optimizer, checkpoints and collectives work on whole buffers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wam/base/random_stream.h"
#include "wam/graph/builder.h"

namespace wam {

inline constexpr int64_t kParamAlignment = 64;  // elements

enum class InitKind : uint8_t { kZeros, kOnes, kNormal, kXavierUniform, kUniformFanIn };

struct ParamInit {
  InitKind kind = InitKind::kXavierUniform;
  double scale = 1;     // standard deviation (kNormal) or gain
  int64_t fan_in = 0;   // 0: the last dim (product of all but the first for more than two dims)
  int64_t fan_out = 0;  // 0: the first dim
};

// One tensor of a checkpoint; a parameter is one or several of them stacked along the first dim.
struct ParamPart {
  std::string name;  // "blocks.0.self_attn.q.weight"
  Shape shape;       // as in the checkpoint
  int64_t offset_elements = 0;  // from the parameter's start
  ParamInit init;
};

struct Param {
  std::string name;  // the only part's name, or the stack's
  Shape shape;       // as the graph uses it
  std::vector<ParamPart> parts;
  std::string region;           // flat buffer
  int64_t offset_elements = 0;  // in the flat buffer
  int block = -1;
};

struct FlatBuffer {
  std::string region;
  int64_t num_elements = 0;  // a multiple of kParamAlignment
  int block = -1;
};

// The layout. Filled by the first graph that is built with it; later graphs must ask for the same.
class ParamSet {
 public:
  // `trainable` decides role and, for plans, category.
  ParamSet(std::string name, bool trainable) : name_(std::move(name)), trainable_(trainable) {}

  const std::string& name() const { return name_; }
  bool trainable() const { return trainable_; }
  const std::vector<Param>& params() const { return params_; }
  const std::vector<FlatBuffer>& buffers() const { return buffers_; }
  const Param* find(std::string_view name) const;
  int64_t num_elements() const;  // padding not counted
  int64_t num_padded_elements() const;

  // Finds or defines a parameter. GraphError if it exists with other parts or another shape.
  const Param& define(std::string_view name, const Shape& shape, std::vector<ParamPart> parts, int block);

 private:
  std::string name_;
  bool trainable_;
  std::vector<Param> params_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<FlatBuffer> buffers_;
};

// Hands out a graph's parameter values; the model builders' only way to weights.
class ParamUser {
 public:
  ParamUser(Builder& builder, ParamSet& set, DType dtype) : builder_(builder), set_(set), dtype_(dtype) {}

  Builder& builder() { return builder_; }
  DType dtype() const { return dtype_; }
  // A parameter that is one tensor of the checkpoint, with the graph's shape `shape`; the
  // checkpoint's shape may differ in dims of size 1 ([1, in, out] coders): give it as `stored`.
  ValueId param(const std::string& name, const Shape& shape, const ParamInit& init, int block = -1);
  ValueId param(const std::string& name, const Shape& shape, const Shape& stored, const ParamInit& init,
                int block = -1);
  // Several checkpoint tensors of shape `part` stacked along the first dim: [n * part[0], ...].
  ValueId stacked(const std::string& name, std::span<const std::string> part_names, const Shape& part,
                  const ParamInit& init, int block = -1);
  // All parameter values handed out for this graph, in the set's order of definition.
  std::vector<std::pair<const Param*, ValueId>> used() const;

 private:
  ValueId use(const Param& param);
  Builder& builder_;
  ParamSet& set_;
  DType dtype_;
  std::map<std::string, ValueId> values_;
};

// Region names of the buffers that mirror a flat buffer.
std::string gradient_region(const std::string& region);  // "<region>:grad"
std::string moment_region(const std::string& region, int which);  // "<region>:m", "<region>:v"
std::string low_region(const std::string& region);  // "<region>:low", what bf16 leaves of the master

// Half the width of the part's uniform distribution; for kNormal that of the same deviation, 0 for
// the constants.
double uniform_bound(const ParamPart& part);

// True if the part's values are uniform over [-uniform_bound(), uniform_bound()), two to a block of
// init_stream(): what Memory::draw_uniform() makes.
bool is_uniform(const ParamPart& part);
RandomStream init_stream(const ParamPart& part, uint64_t seed);
// Initial values of one part as float32, a pure function of (seed, name). Uses all threads.
void initialise(const ParamPart& part, uint64_t seed, std::span<float> values);

}  // namespace wam
