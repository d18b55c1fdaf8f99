#include "wam/models/weights.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <future>
#include <set>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/tensor/mapped_tensor.h"

namespace wam {
namespace {

constexpr size_t kListed = 20;

bool contains_any(const std::string& name, const std::vector<std::string>& pieces) {
  return std::ranges::any_of(pieces, [&](const std::string& piece) {
    return name.find(piece) != std::string::npos;
  });
}

std::string listed(const std::string& what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = std::to_string(names.size()) + " " + what + " (";
  for (size_t i = 0; i < std::min(names.size(), kListed); ++i) text += (i ? ", " : "") + quote(names[i]);
  return text + (names.size() > kListed ? ", ...)" : ")");
}

std::string choose_prefix(const ParamSet& set, const TensorArchive& archive,
                          const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    for (const Param& param : set.params()) {
      for (const ParamPart& part : param.parts) {
        if (archive.contains(prefix + part.name)) return prefix;
      }
    }
  }
  return prefixes.empty() ? "" : prefixes.front();
}

class Loader {
 public:
  Loader(const ParamSet& set, const TensorArchive& archive, const LoadOptions& options)
      : set_(set), archive_(archive), options_(options) {
    report_.prefix = choose_prefix(set, archive, options.prefixes);
  }

  WeightsFit fit() {
    for_each([this](const Param&, const ParamPart& part) { check(part); });
    find_unexpected();
    return {report_.prefix, present_, missing_, misshapen_, unexpected_};
  }

  // Everything is checked before the first weight is written.
  LoadReport run(const PartWriter& write) {
    fit();
    throw_if_wrong();
    std::vector<std::pair<const Param*, const ParamPart*>> parts;
    for_each([&](const Param& param, const ParamPart& part) { parts.emplace_back(&param, &part); });
    std::deque<std::future<HostTensor>> ahead;
    size_t next = 0;
    for (const auto& [param, part] : parts) {
      for (; next < parts.size() && ahead.size() <= kReadAhead; ++next) ahead.push_back(fetch(*parts[next].second));
      std::future<HostTensor> value = std::move(ahead.front());
      ahead.pop_front();
      load(*param, *part, value.get(), write);
    }
    return std::move(report_);
  }

 private:
  template <typename F>
  void for_each(const F& f) {
    for (const Param& param : set_.params()) {
      for (const ParamPart& part : param.parts) f(param, part);
    }
  }

  void check(const ParamPart& part) {
    const std::string name = report_.prefix + part.name;
    asked_.insert(name);
    const TensorType* type = archive_.find(name);
    present_ += type != nullptr ? 1 : 0;
    if (type == nullptr) {
      if (!contains_any(part.name, options_.may_be_missing)) missing_.push_back(name);
    } else if (type->shape != part.shape) {
      misshapen_.push_back(name + " " + type->shape.to_string() + " instead of " + part.shape.to_string());
    } else if (!is_floating(type->dtype)) {
      misshapen_.push_back(name + " of type " + std::string(wam::name(type->dtype)));
    }
  }

  void find_unexpected() {
    for (const std::string& name : archive_.names()) {
      if (asked_.contains(name)) continue;
      report_.unused.push_back(name);
      const bool ours = name.starts_with(report_.prefix);
      if (ours && !contains_any(name, options_.may_be_unused)) unexpected_.push_back(name);
    }
  }

  void throw_if_wrong() const {
    if (missing_.empty() && misshapen_.empty() && unexpected_.empty()) return;
    std::string got;
    for (const std::string& text : {listed("missing", missing_), listed("misshapen", misshapen_),
                                    listed("unexpected", unexpected_)}) {
      if (!text.empty()) got += (got.empty() ? "" : "; ") + text;
    }
    throw DataError({.where = archive_.files().front().string(),
                     .what = "weights do not fit the model '" + set_.name() + "'",
                     .got = got,
                     .expected = "every tensor of the model and no other",
                     .remedy = "Check model.preset and sizes against the checkpoint."});
  }

  // The tensor's bytes, read by a thread of its own; empty for one that is not in the archive.
  std::future<HostTensor> fetch(const ParamPart& part) const {
    const std::string name = report_.prefix + part.name;
    return std::async(std::launch::async, [this, name] {
      if (!archive_.contains(name)) return HostTensor();
      HostTensor value = archive_.load(name);
      read_whole(value);
      return value;
    });
  }

  void load(const Param& param, const ParamPart& part, const HostTensor& found, const PartWriter& write) {
    if (!found.empty()) {
      write(param, part, found.to(DType::kF32));
      ++report_.loaded;
      return;
    }
    HostTensor value(DType::kF32, part.shape);
    initialise(part, options_.seed, value.as<float>());
    write(param, part, value);
    report_.initialised.push_back(part.name);
  }

  const ParamSet& set_;
  const TensorArchive& archive_;
  const LoadOptions& options_;
  LoadReport report_;
  int64_t present_ = 0;
  std::set<std::string> asked_;
  std::vector<std::string> missing_, misshapen_, unexpected_;
};

}  // namespace

LoadReport load_weights(const ParamSet& set, const TensorArchive& archive, const LoadOptions& options,
                        const PartWriter& write) {
  return Loader(set, archive, options).run(write);
}

WeightsFit check_weights(const ParamSet& set, const TensorArchive& archive, const LoadOptions& options) {
  return Loader(set, archive, options).fit();
}

void initialise_weights(const ParamSet& set, uint64_t seed, const PartWriter& write,
                        const PartDrawer& draw) {
  for (const Param& param : set.params()) {
    for (const ParamPart& part : param.parts) {
      if (draw && draw(param, part)) continue;
      HostTensor value(DType::kF32, part.shape);
      initialise(part, seed, value.as<float>());
      write(param, part, value);
    }
  }
}

std::vector<std::string> base_checkpoint_gaps() {
  return {"img_emb.",        "cross_attn.k_img.", "cross_attn.v_img.", "cross_attn.norm_k_img.",
          "action_encoder.", "action_decoder.",   "state_encoder."};
}

}  // namespace wam
