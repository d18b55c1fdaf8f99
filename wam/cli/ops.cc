// wam ops: every op with its traits, gradient and kernels; --markdown gives docs/ops.md.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <string>
#include <vector>

#include "wam/base/strings.h"
#include "wam/cli/commands.h"
#include "wam/ops/op_list.h"

namespace wam::cli {
namespace {

struct OpRow {
  const OpDef* op;
  const char* stem;
  bool has_cpu_kernel, has_cuda_kernel;
};

constexpr OpRow kRows[] = {
#define WAM_OP(name, stem, cpu, cuda) {&name##_op, #stem, cpu != 0, cuda != 0},
#include "wam/ops/op_list.inc"
#undef WAM_OP
};

struct TraitName {
  OpTrait trait;
  const char* name;
};
constexpr std::array<TraitName, 7> kTraits = {{{kElementwise, "elementwise"},
                                               {kReduction, "reduction"},
                                               {kMatrix, "matrix"},
                                               {kView, "view"},
                                               {kNotDifferentiable, "no gradient"},
                                               {kCollective, "collective"},
                                               {kSideEffect, "side effect"}}};

std::string traits_text(const OpDef& op) {
  std::vector<std::string> names;
  for (const TraitName& entry : kTraits) {
    if (op.has(entry.trait)) names.emplace_back(entry.name);
  }
  return join(names, ", ");
}

const char* gradient_text(const OpDef& op) {
  if (op.backward != nullptr) return "own";
  if (op.has(kNotDifferentiable) || op.decompose == nullptr) return "none";
  return "of its parts";
}

std::string in_place_text(const OpDef& op) {
  std::vector<std::string> pairs;
  for (const InPlace& pair : op.in_place) {
    pairs.push_back(fmt::format("{} over {}", pair.output, pair.input));
  }
  return join(pairs, ", ");
}

const char* kernel_text(const OpRow& row, bool present) {
  return row.op->has(kView) ? "view" : present ? "yes" : "";
}

// Cells of one row, in the order of kColumns.
constexpr std::array<const char*, 7> kColumns = {"op",       "traits", "gradient", "decomposes",
                                                 "in place", "CPU",    "CUDA"};
std::array<std::string, 7> cells(const OpRow& row) {
  const OpDef& op = *row.op;
  return {std::string(op.name),
          traits_text(op),
          gradient_text(op),
          op.decompose != nullptr ? "yes" : "",
          in_place_text(op),
          kernel_text(row, row.has_cpu_kernel),
          kernel_text(row, row.has_cuda_kernel)};
}

void print_table() {
  const auto line = [](const auto& c) {
    fmt::print("{:<20} {:<24} {:<12} {:<10} {:<18} {:<4} {}\n", c[0], c[1], c[2], c[3], c[4], c[5],
               c[6]);
  };
  line(kColumns);
  for (const OpRow& row : kRows) line(cells(row));
  fmt::print("{} ops\n", std::size(kRows));
}

constexpr const char* kMarkdownHead =
    "# Ops\n"
    "\n"
    "Made by `wam ops --markdown > docs/ops.md`; a test checks that it is up to date. What an op\n"
    "computes, its shapes and its formula stand in its header, `wam/ops/<file>.h`.\n"
    "\n"
    "- **gradient**: *own* has a backward; *of its parts* is differentiated through its "
    "decomposition.\n"
    "- **decomposes**: can be replaced by plainer ops, where a device has no kernel for it.\n"
    "- **in place**: output *i over j* may lie in the memory of input *j* when nobody reads that "
    "later.\n"
    "- **CPU**, **CUDA**: has a kernel of its own; a *view* needs none.\n"
    "\n";

void print_markdown() {
  fmt::print("{}", kMarkdownHead);
  fmt::print(
      "| op | file | traits | gradient | decomposes | in place | CPU | CUDA |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const OpRow& row : kRows) {
    const std::array<std::string, 7> c = cells(row);
    fmt::print("| `{}` | `{}` | {} | {} | {} | {} | {} | {} |\n", c[0], row.stem, c[1], c[2], c[3],
               c[4], c[5], c[6]);
  }
}

}  // namespace

void add_ops(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("ops", "List every op with its traits and kernels");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "as docs/ops.md");
  command->callback([markdown] { *markdown ? print_markdown() : print_table(); });
}

}  // namespace wam::cli
