// How long programs take on a card, from its measured ceilings: what `wam plan --gpu` predicts with.
// A step takes the arithmetic at the rate its kind of op reaches, its bytes at the bandwidth that is
// reached, and a time that launching and filling the card costs. Products and attention fetch and
// multiply at once, but their first and last tiles do not: measured, the sum fits better than the
// larger of the two.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "wam/plan/program.h"

namespace wam::train {

struct CardRates {
  double products = 0;            // FLOP/s of plain products
  double products_epilogue = 0;   // with GELU or its gradient in the epilogue
  double convolutions = 0;
  double attention = 0, attention_grad = 0;
  double attention_grad_fixed = 0;  // seconds a call: several kernels, uneven rectangles
  double copies = 0;              // byte/s of a large copy, read and written
  double rows = 0;                // of kernels that reduce over rows of tokens
  double launch = 0;              // seconds a kernel
};

struct Card {
  std::string name;
  int64_t free_bytes = 0;  // what cudaMemGetInfo() calls free on an empty card
  CardRates rates;
};

// Known cards: h200 as measured (docs/performance.md); h100, the same processor with less and slower
// memory, scaled from it. Throws ConfigError naming them for another one.
const Card& find_card(const std::string& where, const std::string& name);
std::vector<std::string> card_names();

// Seconds of one run.
double predict_seconds(const Program& program, const CardRates& rates);

}  // namespace wam::train
