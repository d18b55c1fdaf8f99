#include "wam/data/tokenizer.h"

#include <sentencepiece_processor.h>

#include "wam/base/error.h"
#include "wam/base/strings.h"

namespace wam::data {
namespace {

std::vector<int32_t> ended(std::vector<int32_t> ids, int64_t max_tokens, int32_t eos) {
  if (std::ssize(ids) >= max_tokens) ids.resize(static_cast<size_t>(max_tokens - 1));
  ids.push_back(eos);
  return ids;
}

class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(int64_t max_tokens) : max_tokens_(max_tokens) {}
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (char c : text) ids.push_back(static_cast<uint8_t>(c) + kFirstByte);
    return ended(std::move(ids), max_tokens_, eos_id());
  }
  int64_t vocab_size() const override { return kFirstByte + 256; }
  int32_t eos_id() const override { return 1; }
  int32_t pad_id() const override { return 0; }

 private:
  static constexpr int32_t kFirstByte = 3;
  int64_t max_tokens_;
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::filesystem::path& path, int64_t max_tokens)
      : path_(path), max_tokens_(max_tokens) {
    const auto status = processor_.Load(path.string());
    if (!status.ok()) refuse("not a SentencePiece model", status.ToString());
    if (processor_.eos_id() < 0) refuse("model has no end-of-sequence piece", "none");
  }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int> ids;
    const auto status = processor_.Encode({text.data(), text.size()}, &ids);
    if (!status.ok()) refuse("text cannot be encoded", status.ToString());
    return ended({ids.begin(), ids.end()}, max_tokens_, eos_id());
  }
  int64_t vocab_size() const override { return processor_.GetPieceSize(); }
  int32_t eos_id() const override { return processor_.eos_id(); }
  // Models without a pad piece are padded with 0, as padded positions are masked anyway.
  int32_t pad_id() const override { return std::max(processor_.pad_id(), 0); }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& got) const {
    throw DataError(
        {.where = path_.string(),
         .what = what,
         .got = got,
         .remedy = "text_encoder.tokenizer must name UMT5's spiece.model or its folder."});
  }

  std::filesystem::path path_;
  int64_t max_tokens_;
  sentencepiece::SentencePieceProcessor processor_;
};

// The model file; a folder stands for the one in it.
std::filesystem::path model_file(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path, ignored)) {
    file = path / "spiece.model";
    const auto other = path / "tokenizer.model";
    if (!std::filesystem::exists(file, ignored) && std::filesystem::exists(other, ignored)) {
      file = other;
    }
  }
  if (!path.empty() && std::filesystem::is_regular_file(file, ignored)) return file;
  throw DataError({.where = path.empty() ? "text_encoder.tokenizer" : file.string(),
                   .what = path.empty() ? "no tokenizer named" : "tokenizer file does not exist",
                   .expected = "a SentencePiece model",
                   .remedy = "Set text_encoder.tokenizer to UMT5's spiece.model, or to 'bytes' "
                             "for a model trained from scratch."});
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerOptions& options) {
  if (options.max_tokens < 1) {
    throw ConfigError({.where = "max_tokens",
                       .what = "no room for a token",
                       .got = std::to_string(options.max_tokens),
                       .expected = "at least 1",
                       .remedy = "Raise model.text_len."});
  }
  if (options.kind == "bytes") return std::make_unique<ByteTokenizer>(options.max_tokens);
  if (options.kind == "sentencepiece") {
    return std::make_unique<SentencePieceTokenizer>(model_file(options.path), options.max_tokens);
  }
  const std::vector<std::string> kinds = {"sentencepiece", "bytes"};
  throw ConfigError({.where = "tokenizer",
                     .what = "unknown kind",
                     .got = "'" + options.kind + "'",
                     .remedy = name_hint(options.kind, kinds)});
}

}  // namespace wam::data
