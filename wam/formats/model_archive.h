// One model out of any public checkpoint, as an archive under the names our parameters have, with
// LoRA factors added to their base when a tensor is loaded. Nothing is copied before load(), and
// load() of an unchanged tensor is a view of the mapped file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "wam/formats/checkpoint_files.h"

namespace wam {

struct ModelOptions {
  // Of a LoRA checkpoint that has no base inside; empty: what it names itself.
  std::filesystem::path base;
  // The moving average of the weights instead of the weights; a training checkpoint must have it.
  bool ema = false;
  // Factors stay apart, under "X.lora_A.weight" and "X.lora_B.weight", and their base is not
  // needed.
  bool keep_factors = false;
};

// Throws DataError: the part is not there, names come out twice, factors without their base or of
// sizes that do not fit it, or a base other than the one the factors were trained on.
std::unique_ptr<TensorArchive> open_model(const CheckpointFiles& files, ModelPart part,
                                          const ModelOptions& options = {});
std::unique_ptr<TensorArchive> open_model(const std::filesystem::path& path, ModelPart part,
                                          const ModelOptions& options = {});

// 16 hexadecimal digits that tell one set of values from another: a hash of every tensor's name,
// sizes and float32 values, whatever file or type they were read from. Reads everything once.
std::string model_fingerprint(const TensorArchive& model);

}  // namespace wam
