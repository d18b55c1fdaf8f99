#include "wam/train/cost_model.h"

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/strings.h"

namespace wam::train {
namespace {

// Fitted to the op tables of "The 5B step" in docs/performance.md, at 968 and 7744 rows and for 14B;
// the test holds the prediction to what was measured.
constexpr CardRates kH200 = {.products = 760e12,
                             .products_epilogue = 690e12,
                             .convolutions = 780e12,
                             .attention = 500e12,
                             .attention_grad = 420e12,
                             .attention_grad_fixed = 60e-6,
                             .copies = 4.25e12,
                             .rows = 2.7e12,
                             .launch = 2e-6};

CardRates with_bandwidth(CardRates rates, double share) {
  rates.copies *= share;
  rates.rows *= share;
  return rates;
}

const std::vector<Card>& cards() {
  // 3.35 TB/s of the H100 SXM's data sheet against the H200's 4.8.
  static const std::vector<Card> list = {
      {"h200", int64_t{149'000'000'000}, kH200},
      {"h100", int64_t{84'000'000'000}, with_bandwidth(kH200, 3.35 / 4.8)}};
  return list;
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::ranges::find(ops, op) != ops.end();
}

double seconds_of(const Step& step, const CardRates& r) {
  const std::string_view op = step.op;
  const double flops = step.cost.flops, bytes = step.cost.bytes;
  if (is_one_of(op, {"linear", "linear_dgrad", "linear_wgrad"})) {
    return flops / r.products + bytes / r.copies + r.launch;
  }
  if (op.starts_with("linear_")) return flops / r.products_epilogue + bytes / r.copies + r.launch;
  if (op.starts_with("conv3d")) return flops / r.convolutions + bytes / r.copies + r.launch;
  if (is_one_of(op, {"attention_grad", "block_attention_grad"})) {
    return flops / r.attention_grad + bytes / r.copies + r.attention_grad_fixed;
  }
  if (is_one_of(op, {"attention", "block_attention"})) {
    return flops / r.attention + bytes / r.copies + 5 * r.launch;
  }
  if (is_one_of(op, {"adamw", "adamw_split", "sum_squares", "copy"})) {
    return bytes / r.copies + r.launch;
  }
  return bytes / r.rows + r.launch;
}

}  // namespace

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  for (const Card& card : cards()) names.push_back(card.name);
  return names;
}

const Card& find_card(const std::string& where, const std::string& name) {
  for (const Card& card : cards()) {
    if (card.name == name) return card;
  }
  const std::string hint = name_hint(name, card_names());
  throw ConfigError({.where = where,
                     .what = "unknown card",
                     .got = "'" + name + "'",
                     .expected = "one of " + join(card_names(), ", "),
                     .remedy = hint.empty() ? "Name the card the run is to fit." : hint});
}

double predict_seconds(const Program& program, const CardRates& rates) {
  double total = 0;
  for (const Step& step : program.steps) total += seconds_of(step, rates);
  return total;
}

}  // namespace wam::train
