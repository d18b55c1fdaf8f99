// The fused q/k normalisation and rotation against plain ops (same bits) and against formulas in
// double; gradients against central differences.
#include <cmath>

#include "tests/reference/run_graph.h"
#include "wam/autodiff/gradients.h"
#include "wam/base/error.h"
#include "wam/ops/mul.h"
#include "wam/ops/op_list.h"
#include "wam/ops/qk_norm_rope.h"
#include "wam/ops/rope.h"
#include "wam/ops/sum_rows.h"

namespace wam {
namespace {

using reference::normals;
using reference::same_bits;
using reference::Tensors;
using reference::Values;

struct Case {
  int64_t batch, length, parts, normed, heads, d;
  bool rope;
  int64_t width() const { return heads * d; }
};

HostTensor rotations(int64_t length, int64_t d) {
  HostTensor table(DType::kF64, Shape{length, d / 2, 2});
  for (int64_t i = 0; i < table.num_elements() / 2; ++i) {
    const double angle = 0.37 * static_cast<double>(i) + 0.1;
    table.as<double>()[static_cast<size_t>(2 * i)] = std::cos(angle);
    table.as<double>()[static_cast<size_t>(2 * i + 1)] = std::sin(angle);
  }
  return table;
}

Tensors make_inputs(const Case& c, DType dtype) {
  Tensors inputs = {{"x", normals(Shape{c.batch, c.length, c.parts * c.width()}, 1).to(dtype)},
                    {"dy", normals(Shape{c.batch, c.length, c.parts * c.width()}, 2).to(dtype)}};
  for (int64_t i = 0; i < c.normed; ++i) {
    inputs["w" + std::to_string(i)] =
        normals(Shape{c.width()}, 3 + static_cast<uint64_t>(i)).to(dtype);
  }
  if (c.rope) inputs["table"] = rotations(c.length, c.d).to(dtype);
  return inputs;
}

// Outputs y, loss, dx, dw0, ...; through the fused op or its decomposition.
Tensors run(const Case& c, const Tensors& inputs, bool plain, int threads = 0) {
  return reference::run_graph(
      inputs,
      [&](Builder& b, Values& in) {
        std::vector<ValueId> weights, wrt = {in["x"]};
        for (int64_t i = 0; i < c.normed; ++i) weights.push_back(in["w" + std::to_string(i)]);
        wrt.insert(wrt.end(), weights.begin(), weights.end());
        const QkNormRope options{.parts = c.parts, .heads = c.heads, .eps = 1e-6};
        ValueId y = qk_norm_rope(b, in["x"], weights, c.rope ? in["table"] : ValueId{}, options);
        if (plain) {
          const Node node = b.graph().node(b.graph().value(y).producer);
          y = qk_norm_rope_op.decompose(b, node.inputs, node.attrs)[0];
        }
        const ValueId loss = sum_rows(b, mul(b, y, in["dy"]), Shape{});
        const std::vector<ValueId> grads = gradients(b, loss, wrt);
        b.graph().add_output("y", y);
        b.graph().add_output("loss", loss);
        b.graph().add_output("dx", grads[0]);
        for (int64_t i = 0; i < c.normed; ++i) {
          b.graph().add_output("dw" + std::to_string(i), grads[static_cast<size_t>(i) + 1]);
        }
      },
      threads);
}

const Case kCases[] = {{1, 1, 1, 1, 1, 2, true},    {2, 3, 3, 2, 2, 4, true},
                       {2, 70, 3, 2, 4, 16, true},  {3, 33, 2, 1, 2, 8, false},
                       {1, 130, 1, 1, 3, 6, false}, {1, 5, 3, 3, 1, 10, true}};

TEST(QkNormRope, PlainOpsGiveTheSameBits) {
  for (const Case& c : kCases) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const Tensors inputs = make_inputs(c, dtype);
      const Tensors fused = run(c, inputs, false, 1), plain = run(c, inputs, true, 1);
      const Tensors two = run(c, inputs, false, 2);
      for (const auto& [name, value] : fused) {
        EXPECT_TRUE(same_bits(value, plain.at(name))) << name << " of length " << c.length;
        EXPECT_TRUE(same_bits(value, two.at(name))) << name << " on two threads";
      }
    }
  }
}

TEST(QkNormRope, MatchesTheFormula) {
  const Case c{2, 7, 3, 2, 2, 6, true};
  const Tensors in = make_inputs(c, DType::kF64);
  const HostTensor y = run(c, in, false).at("y");
  HostTensor want = in.at("x").clone();
  const std::span<double> v = want.as<double>();
  for (int64_t row = 0; row < c.batch * c.length; ++row) {
    for (int64_t part = 0; part < c.normed; ++part) {
      const int64_t at = (row * c.parts + part) * c.width();
      double square = 0;
      for (int64_t i = 0; i < c.width(); ++i) square += std::pow(v[static_cast<size_t>(at + i)], 2);
      const double norm = std::sqrt(square / static_cast<double>(c.width()) + 1e-6);
      for (int64_t i = 0; i < c.width(); ++i) {
        v[static_cast<size_t>(at + i)] *=
            in.at("w" + std::to_string(part)).as<double>()[static_cast<size_t>(i)] / norm;
      }
      for (int64_t i = 0; i < c.width(); i += 2) {
        const double angle =
            0.37 * static_cast<double>(row % c.length * (c.d / 2) + i % c.d / 2) + 0.1;
        double &even = v[static_cast<size_t>(at + i)], &odd = v[static_cast<size_t>(at + i + 1)];
        const double rotated = even * std::cos(angle) - odd * std::sin(angle);
        odd = even * std::sin(angle) + odd * std::cos(angle);
        even = rotated;
      }
    }
  }
  EXPECT_LE(reference::relative(y, want), 1e-14);
}

TEST(QkNormRope, GradientsMatchCentralDifferences) {
  const Case c{2, 3, 3, 2, 2, 4, true};
  Tensors inputs = make_inputs(c, DType::kF64);
  const Tensors got = run(c, inputs, false);
  for (const auto& [name, grad] : {std::pair{"x", "dx"}, {"w0", "dw0"}, {"w1", "dw1"}}) {
    HostTensor& value = inputs.at(name);
    for (size_t i = 0; i < static_cast<size_t>(value.num_elements()); ++i) {
      constexpr double h = 1e-5;  // truncation h^2, rounding 1e-16 / h: both near 1e-10
      const double saved = value.as<double>()[i];
      value.as<double>()[i] = saved + h;
      const double up = run(c, inputs, false).at("loss").as<double>()[0];
      value.as<double>()[i] = saved - h;
      const double down = run(c, inputs, false).at("loss").as<double>()[0];
      value.as<double>()[i] = saved;
      EXPECT_NEAR(got.at(grad).as<double>()[i], (up - down) / (2 * h), 1e-7) << name << i;
    }
  }
}

TEST(Rope, InverseUndoesIt) {
  const Tensors got = reference::run_graph(
      {{"x", normals(Shape{2, 9, 12}, 1)}, {"table", rotations(9, 6)}}, [](Builder& b, Values& in) {
        const ValueId turned = rope(b, in["x"], in["table"], 2);
        b.graph().add_output("turned", turned);
        b.graph().add_output("again", rope(b, turned, in["table"], 2, /*inverse=*/true));
      });
  const HostTensor x = normals(Shape{2, 9, 12}, 1);
  EXPECT_LE(reference::relative(got.at("again"), x), 1e-15 * 4);
  EXPECT_GT(reference::relative(got.at("turned"), x), 0.1);
}

TEST(QkNormRope, BadShapesAreRefused) {
  Case odd{1, 4, 3, 2, 2, 3, true};  // rotation needs an even head width
  Tensors inputs = make_inputs(odd, DType::kF64);
  inputs["table"] = rotations(4, 4);
  EXPECT_THROW(run(odd, inputs, false), GraphError);
  Case good{1, 4, 3, 2, 2, 4, true};
  inputs = make_inputs(good, DType::kF64);
  inputs["table"] = rotations(5, 4);
  EXPECT_THROW(run(good, inputs, false), GraphError);
  inputs = make_inputs(good, DType::kF64);
  inputs["w1"] = normals(Shape{7}, 1);
  EXPECT_THROW(run(good, inputs, false), GraphError);
}

}  // namespace
}  // namespace wam
