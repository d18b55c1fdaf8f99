#include "wam/plan/storage.h"

#include <algorithm>

#include "wam/base/check.h"
#include "wam/graph/builder.h"
#include "wam/ops/copy.h"

namespace wam {
namespace {

class StorageAssigner {
 public:
  explicit StorageAssigner(Graph& graph) : graph_(graph) {}

  StorageMap run() {
    copy_unsharable_updates();
    prepare();
    for (size_t i = 0; i < graph_.order().size(); ++i) visit(graph_.order()[i], static_cast<int32_t>(i));
    const auto end = static_cast<int32_t>(graph_.order().size());
    for (const NamedValue& output : graph_.outputs()) touch(output.value, end);
    return std::move(map_);
  }

 private:
  static size_t at(ValueId id) { return static_cast<size_t>(id.index); }
  static size_t at_node(NodeId id) { return static_cast<size_t>(id.index); }

  // A state may be written by the producer of its new value if nobody reads the old one later.
  bool can_share(const StateUpdate& update) const {
    const Value& value = graph_.value(update.value);
    if (value.kind != ValueKind::kIntermediate) return false;
    const Node& producer = graph_.node(value.producer);
    if (producer.op->has(kView)) return false;
    bool seen = false;
    for (const NodeId id : graph_.order()) {
      if (id == value.producer) {
        seen = true;
        if (!reads_only_in_place(producer, update, value.output_index)) return false;
      } else if (seen && reads(graph_.node(id), update.state)) {
        return false;
      }
    }
    return seen;
  }

  static bool reads(const Node& node, ValueId id) { return std::ranges::count(node.inputs, id) != 0; }

  static bool reads_only_in_place(const Node& node, const StateUpdate& update, int output) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != update.state) continue;
      const bool allowed = std::ranges::any_of(node.op->in_place, [&](const InPlace& pair) {
        return pair.output == output && pair.input == static_cast<int>(i);
      });
      if (!allowed) return false;
    }
    return true;
  }

  // Two states may not receive one value, and views of a state count as readers of it.
  void copy_unsharable_updates() {
    std::vector<char> taken(static_cast<size_t>(graph_.num_values()), 0);
    std::vector<char> viewed(static_cast<size_t>(graph_.num_values()), 0);
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.op->has(kView)) viewed[at(node.inputs[0])] = 1;
    }
    Builder builder(graph_);
    for (StateUpdate& update : graph_.updates()) {
      const bool free = !taken[at(update.value)] && !viewed[at(update.state)];
      if (free && can_share(update)) {
        taken[at(update.value)] = 1;
        continue;
      }
      ScopeGuard scope(builder, {.label = "update " + graph_.value(update.state).name,
                                 .phase = Phase::kUpdate});
      update.value = copy(builder, update.value);
    }
  }

  void prepare() {
    const auto count = static_cast<size_t>(graph_.num_values());
    map_.storage_of.assign(count, -1);
    map_.offset_of.assign(count, 0);
    updates_.assign(count, ValueId{});
    last_read_.assign(count, -1);
    packed_.assign(count, Packed{});
    position_.assign(static_cast<size_t>(graph_.num_nodes()), -1);
    for (const StateUpdate& update : graph_.updates()) updates_[at(update.value)] = update.state;
    collect_last_reads();
    for (size_t i = 0; i < graph_.order().size(); ++i) position_[at_node(graph_.order()[i])] = static_cast<int32_t>(i);
    for (const NodeId id : graph_.order()) {
      if (!graph_.node(id).op->has(kPack)) continue;
      claim_pieces(graph_.node(id));
      claim_state(graph_.node(id));
    }
  }

  // A pack that an op in place turns into a state's new value lies in the state from the start: its
  // pieces are written there as they are made.
  void claim_state(const Node& pack) {
    const ValueId whole = pack.outputs[0];
    const Node* reader = only_reader(whole);
    if (reader == nullptr || updates_[at(whole)].valid()) return;
    const bool in_place = std::ranges::any_of(reader->op->in_place, [](const InPlace& pair) {
      return pair.output == 0 && pair.input == 0;
    });
    if (!in_place || reader->inputs[0] != whole) return;
    const ValueId state = updates_[at(reader->outputs[0])];
    if (state.valid() && graph_.type(state) == graph_.type(whole) && is_free_for(pack, state))
      map_.storage_of[at(whole)] = storage_of(state);
  }

  const Node* only_reader(ValueId id) const {
    const Node* found = nullptr;
    for (const NodeId reader : graph_.order()) {
      if (!reads(graph_.node(reader), id)) continue;
      if (found != nullptr) return nullptr;
      found = &graph_.node(reader);
    }
    return found;
  }

  // Whether every read of the state's memory, under whatever name, comes before the piece that
  // overwrites it, or is the very op that does.
  bool is_free_for(const Node& pack, ValueId state) const {
    const Placement& target = graph_.value(state).placement;
    for (int i = 0; i < graph_.num_values(); ++i) {
      const Value& other = graph_.value(ValueId{i});
      if (other.kind != ValueKind::kState || other.placement.region != target.region) continue;
      for (const NodeId id : graph_.order()) {
        const Node& node = graph_.node(id);
        if (!reads(node, ValueId{i})) continue;
        const bool before = position_[at_node(id)] < position_[at_node(graph_.value(pack.outputs[0]).producer)];
        if (!before || ValueId{i} == state || node.op->has(kView)) return false;
        if (!reads_in_time(pack, node, id, ValueId{i}, other.placement.offset_bytes - target.offset_bytes))
          return false;
      }
    }
    return true;
  }

  // `node` reads state `id`, which lies `begin` bytes behind the pack's start.
  bool reads_in_time(const Node& pack, const Node& node, NodeId reader, ValueId id, int64_t begin) const {
    const int64_t end = begin + graph_.type(id).size_bytes();
    const std::vector<int64_t>& offsets = pack.attrs.integers("offsets");
    for (size_t i = 0; i < pack.inputs.size(); ++i) {
      const TensorType& type = graph_.type(pack.inputs[i]);
      const int64_t from = offsets[i] * size_bytes(type.dtype);
      if (from >= end || from + type.size_bytes() <= begin) continue;
      const ValueId piece = whole_base_of(pack.inputs[i]);
      const Value& value = graph_.value(piece);
      if (value.kind != ValueKind::kIntermediate) return false;
      // What is not written in its place is copied there by the pack itself, which comes after all.
      if (packed_[at(piece)].whole != pack.outputs[0]) continue;
      if (position_[at_node(reader)] < position_[at_node(value.producer)]) continue;
      const bool itself = reader == value.producer && from == begin &&
                          reads_only_in_place(node, {id, piece}, value.output_index);
      if (!itself) return false;
    }
    return true;
  }

  // A piece is written where the pack wants it if its producer puts it nowhere else: not into a state,
  // not into another pack. The pack itself may not update a state: whoever reads the old value between
  // the first piece and the pack would see new bytes.
  void claim_pieces(const Node& pack) {
    const ValueId whole = pack.outputs[0];
    if (updates_[at(whole)].valid()) return;
    const std::vector<int64_t>& offsets = pack.attrs.integers("offsets");
    for (size_t i = 0; i < pack.inputs.size(); ++i) {
      const ValueId piece = whole_base_of(pack.inputs[i]);
      const Value& value = graph_.value(piece);
      if (value.kind != ValueKind::kIntermediate || graph_.node(value.producer).op->has(kView)) continue;
      if (updates_[at(piece)].valid() || packed_[at(piece)].whole.valid()) continue;
      packed_[at(piece)] = {whole, offsets[i] * size_bytes(value.type.dtype)};
    }
  }

  // What `id` is a view of, as long as the views show all of it.
  ValueId whole_base_of(ValueId id) const {
    while (graph_.value(id).kind == ValueKind::kIntermediate) {
      const Node& node = graph_.node(graph_.value(id).producer);
      if (!node.op->has(kView) || graph_.type(node.inputs[0]).size_bytes() != graph_.type(id).size_bytes()) break;
      id = node.inputs[0];
    }
    return id;
  }

  // Last position at which each value, or a view of it, is read.
  void collect_last_reads() {
    const auto end = static_cast<int32_t>(graph_.order().size());
    for (const NamedValue& output : graph_.outputs()) last_read_[at(output.value)] = end;
    for (int32_t i = end - 1; i >= 0; --i) {
      const Node& node = graph_.node(graph_.order()[static_cast<size_t>(i)]);
      for (const ValueId input : node.inputs) last_read_[at(input)] = std::max(last_read_[at(input)], i);
      if (node.op->has(kView)) {
        int32_t& base = last_read_[at(node.inputs[0])];
        base = std::max(base, last_read_[at(node.outputs[0])]);
      }
    }
  }

  int32_t new_storage(Storage storage) {
    map_.storages.push_back(storage);
    return static_cast<int32_t>(map_.storages.size()) - 1;
  }

  int32_t storage_of(ValueId id) {
    int32_t& storage = map_.storage_of[at(id)];
    if (storage < 0) {
      WAM_CHECK(graph_.value(id).kind != ValueKind::kIntermediate) << "%" << id.index;
      storage = new_storage({.fixed = id, .bytes = graph_.type(id).size_bytes()});
    }
    return storage;
  }

  void touch(ValueId id, int32_t position) {
    Storage& storage = map_.storages[static_cast<size_t>(storage_of(id))];
    if (storage.first < 0) storage.first = position;
    storage.last = std::max(storage.last, position);
  }

  void visit(NodeId id, int32_t position) {
    const Node& node = graph_.node(id);
    for (const ValueId input : node.inputs) touch(input, position);
    if (node.op->has(kView)) {
      place_view(node);
      return;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      place_output(node, static_cast<int>(i), position);
      touch(node.outputs[i], position);
    }
  }

  void place_view(const Node& node) {
    std::vector<TensorType> types;
    for (const ValueId input : node.inputs) types.push_back(graph_.type(input));
    const ValueId output = node.outputs[0], base = node.inputs[0];
    map_.storage_of[at(output)] = storage_of(base);
    map_.offset_of[at(output)] = map_.offset_of[at(base)] + node.op->view_offset({types, node.attrs});
  }

  void place_output(const Node& node, int index, int32_t position) {
    const ValueId output = node.outputs[static_cast<size_t>(index)];
    const ValueId state = updates_[at(output)];
    if (state.valid()) {
      map_.storage_of[at(output)] = storage_of(state);
      return;
    }
    if (map_.storage_of[at(output)] >= 0) return;  // a pack whose pieces came first
    if (packed_[at(output)].whole.valid()) {
      place_piece(output, packed_[at(output)]);
      return;
    }
    const ValueId reused = find_reusable(node, index, position);
    if (reused.valid()) {
      map_.storage_of[at(output)] = storage_of(reused);
      return;
    }
    map_.storage_of[at(output)] = new_storage({.bytes = graph_.type(output).size_bytes()});
  }

  struct Packed {
    ValueId whole;  // output of the pack; invalid: none
    int64_t offset_bytes = 0;
  };

  void place_piece(ValueId piece, const Packed& packed) {
    int32_t& whole = map_.storage_of[at(packed.whole)];
    if (whole < 0) whole = new_storage({.bytes = graph_.type(packed.whole).size_bytes()});
    map_.storage_of[at(piece)] = whole;
    map_.offset_of[at(piece)] = packed.offset_bytes;
  }

  // An input that dies here, alone in its arena storage, of the output's size, and allowed by the op.
  ValueId find_reusable(const Node& node, int index, int32_t position) {
    const int64_t bytes = graph_.type(node.outputs[static_cast<size_t>(index)]).size_bytes();
    for (const InPlace& pair : node.op->in_place) {
      if (pair.output != index || static_cast<size_t>(pair.input) >= node.inputs.size()) continue;
      const ValueId input = node.inputs[static_cast<size_t>(pair.input)];
      const int32_t storage = storage_of(input);
      const Storage& s = map_.storages[static_cast<size_t>(storage)];
      if (s.fixed.valid() || s.bytes != bytes || graph_.type(input).size_bytes() != bytes) continue;
      if (!dies_at(storage, position) || used_elsewhere(node, index, pair.input, storage)) continue;
      return input;
    }
    return {};
  }

  bool dies_at(int32_t storage, int32_t position) const {
    for (size_t i = 0; i < map_.storage_of.size(); ++i) {
      if (map_.storage_of[i] == storage && last_read_[i] > position) return false;
    }
    return true;
  }

  // Another input, or an output placed before, already lies in this storage.
  bool used_elsewhere(const Node& node, int output, int input, int32_t storage) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (static_cast<int>(i) != input && storage_of(node.inputs[i]) == storage) return true;
    }
    for (int i = 0; i < output; ++i) {
      if (map_.storage_of[at(node.outputs[static_cast<size_t>(i)])] == storage) return true;
    }
    return false;
  }

  Graph& graph_;
  StorageMap map_;
  std::vector<ValueId> updates_;    // value index -> state it updates
  std::vector<int32_t> last_read_;
  std::vector<Packed> packed_;      // value index -> the pack it is written into
  std::vector<int32_t> position_;   // node index -> place in the order
};

}  // namespace

StorageMap assign_storage(Graph& graph) { return StorageAssigner(graph).run(); }

}  // namespace wam
