// Weights from checkpoints and seeds into a parameter set, and back. Strict: missing, unexpected and
// misshapen names are one error that lists them, but for groups a base checkpoint lacks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "wam/models/params.h"
#include "wam/tensor/archive.h"

namespace wam {

// Takes or gives the values of one checkpoint tensor, float32, in its checkpoint shape.
using PartWriter = std::function<void(const Param&, const ParamPart&, const HostTensor&)>;
using PartReader = std::function<HostTensor(const Param&, const ParamPart&)>;

struct LoadOptions {
  // Tried in turn; the first under which any of the set's names exists is used. "" for a bare
  // checkpoint, "action_head.model." inside a full DreamZero checkpoint.
  std::vector<std::string> prefixes = {""};
  // A missing name that contains one of these is initialised from the seed and reported.
  std::vector<std::string> may_be_missing;
  // A name of the archive that contains one of these may be left over.
  std::vector<std::string> may_be_unused;
  uint64_t seed = 0;
};

struct LoadReport {
  std::string prefix;
  int64_t loaded = 0;                     // tensors
  std::vector<std::string> initialised;   // from the seed
  std::vector<std::string> unused;        // names of the archive nobody asked for
};

// How an archive's names and sizes fit a set; looks at no value.
struct WeightsFit {
  std::string prefix;
  int64_t present = 0;                     // tensors of the set that the archive has
  std::vector<std::string> missing;        // and may not be
  std::vector<std::string> misshapen;      // name, size and the size it should have
  std::vector<std::string> unexpected;     // and may not be
  bool fits() const { return missing.empty() && misshapen.empty() && unexpected.empty(); }
};
WeightsFit check_weights(const ParamSet& set, const TensorArchive& archive, const LoadOptions& options);

// Tensors are read ahead of the conversion to float32, a few at a time: besides what `write` fills, at
// most kReadAhead + 1 tensors are in memory.
inline constexpr size_t kReadAhead = 3;
// Throws DataError that names the archive's first file and lists up to 20 offending names of each kind.
LoadReport load_weights(const ParamSet& set, const TensorArchive& archive, const LoadOptions& options,
                        const PartWriter& write);

// Makes a part's initial values where they lie, if it can (Memory::draw_uniform()); false if not.
using PartDrawer = std::function<bool(const Param&, const ParamPart&)>;

// All values from the seed: by `draw` where it can, else made here and given to `write`.
void initialise_weights(const ParamSet& set, uint64_t seed, const PartWriter& write,
                        const PartDrawer& draw = {});

// What base checkpoints lack of a DiT: image embedding and image keys/values (5B), action and state
// coders (all).
std::vector<std::string> base_checkpoint_gaps();

}  // namespace wam
