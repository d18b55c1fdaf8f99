#include "wam/tensor/torch_flatten.h"

#include <fmt/format.h>

#include <bit>

#include "wam/base/error.h"
#include "wam/base/quote.h"

namespace wam {
namespace {

constexpr int kMaxDepth = 64;
// Containers may be shared in a pickle, so that a few bytes stand for very many leaves.
constexpr int64_t kMaxValues = 4'000'000;
constexpr size_t kMaxNameChars = 4096;
constexpr size_t kMaxKeysListed = 8;

class Flattener {
 public:
  Flattener(const PickleDocument& document, const std::string& where)
      : document_(document), where_(where) {}

  FlatPickle run(PickleValue root) {
    if (is_container(root.kind)) {
      visit(root, "", 0);
    } else {
      add_leaf(root, root.kind == PickleKind::kTensor ? "tensor" : "value");
    }
    return std::move(flat_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& got) const {
    throw DataError(
        {.where = where_,
         .what = what,
         .got = got,
         .remedy = "If you trust the file, load it in PyTorch and save its tensors alone."});
  }

  static bool is_container(PickleKind kind) {
    return kind == PickleKind::kDict || kind == PickleKind::kList || kind == PickleKind::kTuple;
  }

  void visit(PickleValue value, const std::string& name, int depth) {
    if (++num_values_ > kMaxValues) fail("too many values in the pickle", "more than 4 million");
    if (depth > kMaxDepth) fail("containers nested too deep or in themselves", quote(name));
    if (name.size() > kMaxNameChars) fail("name too long", quote(name));
    if (value.kind == PickleKind::kDict) return visit_dict(value, name, depth);
    if (!is_container(value.kind)) return add_leaf(value, name);
    int64_t position = 0;
    for (PickleValue item : document_.sequence(value)) {
      visit(item, join(name, std::to_string(position++), depth), depth + 1);
    }
  }

  void visit_dict(PickleValue dict, const std::string& name, int depth) {
    for (const auto& [key, value] : document_.dict(dict)) {
      if (key.kind != PickleKind::kText && key.kind != PickleKind::kInt) {
        fail("dict key is neither text nor an integer", "a key in " + quote(name));
      }
      const std::string part =
          key.kind == PickleKind::kText ? document_.text(key) : std::to_string(key.bits);
      visit(value, join(name, part, depth), depth + 1);
    }
  }

  static std::string join(const std::string& name, const std::string& part, int depth) {
    return depth == 0 ? part : name + "." + part;
  }

  void add_leaf(PickleValue value, const std::string& name) {
    const bool is_new = value.kind == PickleKind::kTensor
                            ? flat_.tensors.emplace(name, &document_.tensor(value)).second
                            : flat_.metadata.emplace(name, leaf_text(value, name)).second;
    if (!is_new) fail("two values have the same name", quote(name));
  }

  std::string leaf_text(PickleValue value, const std::string& name) const {
    switch (value.kind) {
      case PickleKind::kNone:
        return "None";
      case PickleKind::kBool:
        return value.bits != 0 ? "True" : "False";
      case PickleKind::kInt:
        return std::to_string(value.bits);
      case PickleKind::kFloat:
        return fmt::format("{}", std::bit_cast<double>(value.bits));
      case PickleKind::kText:
        return document_.text(value);
      default:
        fail("a class or storage stands where a value belongs", quote(name));
    }
  }

  const PickleDocument& document_;
  std::string where_;
  FlatPickle flat_;
  int64_t num_values_ = 0;
};

std::string list_of_keys(const PickleDocument& document, PickleValue root) {
  std::string text;
  size_t listed = 0;
  for (const auto& [key, value] : document.dict(root)) {
    if (key.kind != PickleKind::kText) continue;
    if (listed++ == kMaxKeysListed) return text + ", ...";
    text += (text.empty() ? "" : ", ") + quote(document.text(key));
  }
  return text;
}

PickleValue select(const PickleDocument& document, const std::string& key,
                   const std::string& where) {
  const PickleValue root = document.root;
  if (root.kind != PickleKind::kDict) {
    throw DataError({.where = where,
                     .what = "no key can be taken, the root of the pickle is no dict",
                     .got = quote(key),
                     .remedy = "Leave the key out."});
  }
  for (const auto& [name, value] : document.dict(root)) {
    if (name.kind == PickleKind::kText && document.text(name) == key) return value;
  }
  throw DataError({.where = where,
                   .what = "no such key in the pickle",
                   .got = quote(key),
                   .expected = "one of " + list_of_keys(document, root),
                   .remedy = "Name the part of the file that holds the tensors."});
}

}  // namespace

FlatPickle flatten_pickle(const PickleDocument& document, const std::string& key,
                          const std::string& where) {
  const PickleValue root = key.empty() ? document.root : select(document, key, where);
  return Flattener(document, where).run(root);
}

}  // namespace wam
