// Prompts to token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace wam::data {

// Immutable, usable by many threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids of the text and the end-of-sequence id, cut to max_tokens with that id kept last. Text that
  // looks like a control token ("</s>") is text.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual int32_t eos_id() const = 0;
  virtual int32_t pad_id() const = 0;
};

struct TokenizerOptions {
  // "sentencepiece": the model file at `path`, or spiece.model in that folder (UMT5's).
  // "bytes": each byte plus 3, as ByT5 has it (0 pad, 1 end, 2 unknown); needs no file, and no
  // published text encoder understands it: for the built-in world.
  std::string kind = "sentencepiece";
  std::filesystem::path path;
  int64_t max_tokens = 512;
};

// Throws ConfigError (kind, max_tokens) or DataError (file absent, not a SentencePiece model, or
// one without an end-of-sequence piece).
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerOptions& options);

}  // namespace wam::data
