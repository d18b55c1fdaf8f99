// Kernels: what runs an op on one kind of device. They see types, attributes and bytes, never the
// graph. Each op's kernel is a KernelDef constant in kernels/<device>/<op>.*; the tables are made
// from ops/op_list.inc. An op without a kernel on a device is decomposed before lowering.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "wam/base/attrs.h"
#include "wam/tensor/shape.h"

namespace wam::dist {
struct Groups;  // dist/groups.h
}

namespace wam {

// What a kernel is prepared for; the spans outlive the call of create() only.
struct KernelSignature {
  std::span<const TensorType> inputs;
  std::span<const TensorType> outputs;
  const Attrs& attrs;
};

// Addresses of one execution. On CPU `stream` is null; on GPU it is the cudaStream_t.
// An output may equal an input's address only where the op's in_place list allows it.
struct KernelIo {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;  // as many bytes as workspace_bytes() said, 256-byte aligned
  void* stream = nullptr;
  const dist::Groups* groups = nullptr;  // for collectives; null in a world of one

  template <typename T>
  const T* in(size_t i) const {
    return static_cast<const T*>(inputs[i]);
  }
  template <typename T>
  T* out(size_t i) const {
    return static_cast<T*>(outputs[i]);
  }
};

// A prepared kernel: all choices made, nothing left to look up. run() neither allocates nor throws
// for what create() could have seen; on GPU it only enqueues work and can be captured.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelIo& io) = 0;
};

struct KernelDef {
  std::string_view op;
  // Throws InternalError for types the kernel does not handle.
  std::unique_ptr<Kernel> (*create)(const KernelSignature&);
  // Scratch bytes; a pure function of the signature that needs no device. Null: none.
  int64_t (*workspace_bytes)(const KernelSignature&) = nullptr;
};

// Null if the device has no kernel for the op.
const KernelDef* find_cpu_kernel(std::string_view op);
// Null for every op where the build has no CUDA. Scratch bytes are those of cuda/workspace.h.
const KernelDef* find_cuda_kernel(std::string_view op);

}  // namespace wam
