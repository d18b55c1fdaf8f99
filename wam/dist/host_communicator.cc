#include "wam/dist/host_communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "wam/base/check.h"

namespace wam::dist {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Elements as they are stored, and as they are added.
struct Bf16 {
  uint16_t bits;
};
float load(float x) { return x; }
double load(double x) { return x; }
float load(Bf16 x) { return bf16_to_float(x.bits); }
void store(float value, float& out) { out = value; }
void store(double value, double& out) { out = value; }
void store(float value, Bf16& out) { out.bits = float_to_bf16(value); }

}  // namespace

// Marks the time inside one collective.
class HostCommunicator::Scope {
 public:
  Scope(HostCommunicator& owner, const char* what) : owner_(owner), start_(now()) {
    ++owner_.stats_.calls;
    if (Progress* p = owner_.options_.progress) {
      p->num_collectives.fetch_add(1, std::memory_order_relaxed);
      p->ticks.fetch_add(1, std::memory_order_relaxed);
      p->collective.store(what, std::memory_order_relaxed);
    }
  }
  ~Scope() {
    owner_.stats_.seconds += now() - start_;
    if (Progress* p = owner_.options_.progress) {
      p->collective.store(nullptr, std::memory_order_relaxed);
      p->ticks.fetch_add(1, std::memory_order_relaxed);
    }
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  HostCommunicator& owner_;
  double start_;
};

HostCommunicator::HostCommunicator(std::shared_ptr<Transport> transport, std::vector<int> members,
                                   HostCommunicatorOptions options)
    : transport_(std::move(transport)), members_(std::move(members)), options_(options) {
  const auto self = std::ranges::find(members_, transport_->rank());
  WAM_CHECK(self != members_.end() && std::ranges::is_sorted(members_));
  WAM_CHECK(members_.front() >= 0 && members_.back() < transport_->size());
  WAM_CHECK(options_.bucket_bytes >= 64) << options_.bucket_bytes;
  rank_ = static_cast<int>(self - members_.begin());
}

void HostCommunicator::exchange(const std::vector<Outgoing>& out, const std::vector<Incoming>& in) {
  for (const Incoming& piece : in) stats_.bytes_received += piece.bytes;
  transport_->exchange(out, in);
}

void HostCommunicator::all_gather(const void* in, void* out, int64_t bytes, void*) {
  const Scope scope(*this, "all_gather");
  auto* to = static_cast<std::byte*>(out);
  std::byte* own = to + rank_ * bytes;
  if (own != in) std::memmove(own, in, static_cast<size_t>(bytes));
  if (bytes == 0) return;
  std::vector<Outgoing> send;
  std::vector<Incoming> receive;
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    send.push_back({members_[static_cast<size_t>(r)], own, bytes});
    receive.push_back({members_[static_cast<size_t>(r)], to + r * bytes, bytes});
  }
  exchange(send, receive);
}

// parts[r] is what rank r adds up in this round; the own one is received from all others.
template <typename T, typename Acc, typename Wire>
void HostCommunicator::reduce_segment(const T* in, T* out, const std::vector<Part>& parts) {
  constexpr bool kConvert = !std::is_same_v<T, Wire>;
  const Part own = parts[static_cast<size_t>(rank_)];
  int64_t sent = 0;
  for (const Part& p : parts) sent += p.count;
  received_.resize(
      std::max(received_.size(), static_cast<size_t>(own.count * size()) * sizeof(Wire)));
  if (kConvert) sent_.resize(std::max(sent_.size(), static_cast<size_t>(sent) * sizeof(Wire)));
  auto* terms = reinterpret_cast<Wire*>(received_.data());
  auto* rounded = reinterpret_cast<Wire*>(sent_.data());
  std::vector<Outgoing> send;
  std::vector<Incoming> receive;
  for (int r = 0; r < size(); ++r) {
    const Part& p = parts[static_cast<size_t>(r)];
    const void* data = in + p.begin;
    if constexpr (kConvert) {
      for (int64_t i = 0; i < p.count; ++i) store(load(in[p.begin + i]), rounded[i]);
      data = rounded;
      rounded += p.count;
    }
    if (r == rank_) {
      std::memcpy(terms + r * own.count, data, static_cast<size_t>(own.count) * sizeof(Wire));
      continue;
    }
    const int peer = members_[static_cast<size_t>(r)];
    if (p.count > 0) send.push_back({peer, data, p.count * int64_t{sizeof(Wire)}});
    if (own.count > 0) {
      receive.push_back({peer, terms + r * own.count, own.count * int64_t{sizeof(Wire)}});
    }
  }
  exchange(send, receive);
  const int ranks = size();
#pragma omp parallel for schedule(static) if (own.count > 16384)
  for (int64_t i = 0; i < own.count; ++i) {
    Acc sum = load(terms[i]);
    for (int r = 1; r < ranks; ++r) sum += static_cast<Acc>(load(terms[r * own.count + i]));
    store(sum, out[i]);
  }
}

HostCommunicator::Part HostCommunicator::part(int64_t count, int rank) const {
  const int64_t length = (count + size() - 1) / size();
  const int64_t begin = std::min(count, rank * length);
  return {begin, std::min(count, begin + length) - begin};
}

// scatter: part r lies at in + r * stride, and the sum of the own one goes to out. Otherwise parts
// of `count` elements are summed by one rank each and then given to all.
template <typename T, typename Acc>
void HostCommunicator::reduce(const T* in, T* out, int64_t count, int64_t stride, bool bf16_wire,
                              bool scatter) {
  const int64_t per_part = scatter ? count : part(count, 0).count;
  const int64_t segment = std::max<int64_t>(16, options_.bucket_bytes / int64_t{sizeof(T)});
  for (int64_t at = 0; at < per_part; at += segment) {
    std::vector<Part> parts;
    for (int r = 0; r < size(); ++r) {
      const Part whole = scatter ? Part{r * stride, count} : part(count, r);
      const int64_t begin = std::min(at, whole.count);
      parts.push_back({whole.begin + begin, std::min(segment, whole.count - begin)});
    }
    T* to = scatter ? out + at : out + parts[static_cast<size_t>(rank_)].begin;
    if (bf16_wire) {
      reduce_segment<T, Acc, Bf16>(in, to, parts);
    } else {
      reduce_segment<T, Acc, T>(in, to, parts);
    }
    if (scatter) continue;
    std::vector<Outgoing> send;
    std::vector<Incoming> receive;
    const Part own = parts[static_cast<size_t>(rank_)];
    if (bf16_wire) {
      for (int64_t i = 0; i < own.count; ++i) {
        Bf16 rounded{};
        store(static_cast<float>(load(to[i])), rounded);
        store(static_cast<Acc>(load(rounded)), to[i]);
      }
    }
    for (int r = 0; r < size(); ++r) {
      if (r == rank_) continue;
      const Part& p = parts[static_cast<size_t>(r)];
      const int peer = members_[static_cast<size_t>(r)];
      if (own.count > 0) send.push_back({peer, to, own.count * int64_t{sizeof(T)}});
      if (p.count > 0) receive.push_back({peer, out + p.begin, p.count * int64_t{sizeof(T)}});
    }
    exchange(send, receive);
  }
}

void HostCommunicator::reduce_scatter(const void* in, void* out, int64_t count,
                                      const Reduction& reduction, void*) {
  const Scope scope(*this, "reduce_scatter");
  const bool narrow = reduction.wire == DType::kBF16;
  switch (reduction.dtype) {
    case DType::kF32:
      return reduce<float, float>(static_cast<const float*>(in), static_cast<float*>(out), count,
                                  count, narrow, true);
    case DType::kF64:
      WAM_CHECK(!narrow) << "f64 over a bf16 wire";
      return reduce<double, double>(static_cast<const double*>(in), static_cast<double*>(out),
                                    count, count, false, true);
    case DType::kBF16:
      return reduce<Bf16, float>(static_cast<const Bf16*>(in), static_cast<Bf16*>(out), count,
                                 count, false, true);
    default:
      WAM_CHECK(false) << "sums of " << name(reduction.dtype);
  }
}

void HostCommunicator::all_reduce(const void* in, void* out, int64_t count,
                                  const Reduction& reduction, void*) {
  const Scope scope(*this, "all_reduce");
  const bool narrow = reduction.wire == DType::kBF16;
  switch (reduction.dtype) {
    case DType::kF32:
      return reduce<float, float>(static_cast<const float*>(in), static_cast<float*>(out), count, 0,
                                  narrow, false);
    case DType::kF64:
      WAM_CHECK(!narrow) << "f64 over a bf16 wire";
      return reduce<double, double>(static_cast<const double*>(in), static_cast<double*>(out),
                                    count, 0, false, false);
    case DType::kBF16:
      return reduce<Bf16, float>(static_cast<const Bf16*>(in), static_cast<Bf16*>(out), count, 0,
                                 false, false);
    default:
      WAM_CHECK(false) << "sums of " << name(reduction.dtype);
  }
}

void HostCommunicator::broadcast(void* data, int64_t bytes, int root, void*) {
  const Scope scope(*this, "broadcast");
  WAM_CHECK(root >= 0 && root < size()) << root;
  if (bytes == 0) return;
  std::vector<Outgoing> send;
  std::vector<Incoming> receive;
  for (int r = 0; r < size(); ++r) {
    const int peer = members_[static_cast<size_t>(r)];
    if (rank_ == root && r != root) send.push_back({peer, data, bytes});
    if (rank_ != root && r == root) receive.push_back({peer, data, bytes});
  }
  exchange(send, receive);
}

void HostCommunicator::barrier() {
  const Scope scope(*this, "barrier");
  std::vector<Outgoing> send;
  std::vector<Incoming> receive;
  std::vector<uint8_t> tokens(static_cast<size_t>(size()));
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    const int peer = members_[static_cast<size_t>(r)];
    send.push_back({peer, &tokens[static_cast<size_t>(rank_)], 1});
    receive.push_back({peer, &tokens[static_cast<size_t>(r)], 1});
  }
  exchange(send, receive);
}

}  // namespace wam::dist
