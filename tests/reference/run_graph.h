// Builds, lowers and runs a graph on the CPU device with given inputs: for tests of single ops.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "wam/base/philox.h"
#include "wam/exec/executor.h"
#include "wam/graph/builder.h"
#include "wam/graph/verify.h"

namespace wam::reference {

using Tensors = std::map<std::string, HostTensor>;
using Values = std::map<std::string, ValueId>;

// Standard normals, a function of (shape, index) alone.
inline HostTensor normals(const Shape& shape, uint64_t index, DType dtype = DType::kF64) {
  Random random(11, RandomUse::kTest, 0, index);
  HostTensor tensor(DType::kF64, shape);
  for (double& x : tensor.as<double>()) x = random.normal();
  return tensor.to(dtype);
}

// `build` gets the inputs' values by name and adds the outputs.
inline Tensors run_graph(const Tensors& inputs, const std::function<void(Builder&, Values&)>& build,
                         int threads = 0) {
  Graph graph("reference");
  Builder builder(graph);
  Values values;
  for (const auto& [name, tensor] : inputs) values[name] = graph.add_input(name, tensor.type());
  build(builder, values);
  verify(graph);
  const std::unique_ptr<Device> device = make_cpu_device();
  const Program program = lower(graph, device->target());
  const Program* programs[] = {&program};
  const int saved = omp_get_max_threads();
  if (threads > 0) omp_set_num_threads(threads);
  const std::unique_ptr<Executor> executor =
      device->load(program, device->allocate(combine(programs)), {.poison = true});
  for (const auto& [name, tensor] : inputs) executor->write(name, tensor);
  executor->run();
  omp_set_num_threads(saved);
  Tensors outputs;
  for (const NamedOperand& output : program.outputs)
    outputs[output.name] = executor->read(output.name);
  return outputs;
}

inline double norm(const HostTensor& x) {
  const HostTensor wide = x.to(DType::kF64);
  double sum = 0;
  for (const double v : wide.as<double>()) sum += v * v;
  return std::sqrt(sum);
}

// |got - want| over all elements; infinite where the number of elements differs, NaN for NaN.
inline double difference(const HostTensor& got, const HostTensor& want) {
  if (got.num_elements() != want.num_elements()) return INFINITY;
  const HostTensor a = got.to(DType::kF64), b = want.to(DType::kF64);
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(a.num_elements()); ++i) {
    sum += std::pow(a.as<double>()[i] - b.as<double>()[i], 2);
  }
  return std::sqrt(sum);
}

// |got - want| / |want|; infinite where want is 0.
inline double relative(const HostTensor& got, const HostTensor& want) {
  const double size = norm(want);
  return size > 0 ? difference(got, want) / size : INFINITY;
}

inline bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

}  // namespace wam::reference
