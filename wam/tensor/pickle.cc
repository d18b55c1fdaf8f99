#include "wam/tensor/pickle.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "wam/base/quote.h"
#include "wam/tensor/byte_cursor.h"
#include "wam/tensor/pickle_names.h"
#include "wam/tensor/pickle_stack.h"
#include "wam/tensor/shape.h"

namespace wam {
namespace {

// Full checkpoints of thousands of tensors have pickles below 2 MB.
constexpr size_t kMaxPickleBytes = size_t{64} << 20;
constexpr size_t kMaxObjects = PickleStack::kMaxDepth;
// Names of classes and of zip entries: longer ones could be copied again and again by a few bytes.
constexpr size_t kMaxNameChars = 200;

class Unpickler : private PickleStack {
 public:
  Unpickler(std::span<const std::byte> bytes, const std::string& where)
      : PickleStack(where), cursor_(bytes, where) {}

  PickleDocument run() {
    if (cursor_.remaining() > kMaxPickleBytes) {
      fail("pickle too long", std::to_string(cursor_.remaining()) + " bytes");
    }
    read_protocol();
    while (step()) {
    }
    document_.root = pop_last();
    if (cursor_.remaining() != 0) fail("bytes after the end of the pickle");
    return std::move(document_);
  }

 private:
  void read_protocol() {
    if (cursor_.read<uint8_t>() != kProto) fail("not a pickle of protocol 2 to 5");
    check_protocol();
  }

  void check_protocol() {
    const auto version = cursor_.read<uint8_t>();
    if (version < 2 || version > 5) fail("pickle protocol", std::to_string(version), "2 to 5");
  }

  // ---- objects ----
  // Adds to one of the document's lists and gives the position.
  template <typename T>
  int64_t add(std::vector<T>& list, T item) {
    if (num_objects_++ == kMaxObjects) fail("too many objects in the pickle");
    list.push_back(std::move(item));
    return static_cast<int64_t>(list.size()) - 1;
  }

  void push_text(uint64_t length) {
    if (length > cursor_.remaining())
      fail("text past the end of the pickle", std::to_string(length) + " bytes");
    const std::string_view text = cursor_.text(length);
    if (!is_valid_utf8(text)) fail("text is not UTF-8", quote(text));
    push(PickleKind::kText, add(document_.texts, std::string(text)));
  }

  // Little-endian two's complement of `length` bytes.
  void push_long(uint64_t length) {
    if (length > 8) fail("integer too large", std::to_string(length) + " bytes", "at most 8");
    uint64_t value = 0;
    for (uint64_t i = 0; i < length; ++i) value |= uint64_t{cursor_.read<uint8_t>()} << (8 * i);
    if (length > 0 && length < 8 && (value >> (8 * length - 1) & 1) != 0)
      value |= ~uint64_t{0} << (8 * length);
    push(PickleKind::kInt, static_cast<int64_t>(value));
  }

  void push_sequence(PickleKind kind, std::vector<PickleValue> values) {
    push(kind, add(document_.sequences, std::move(values)));
  }

  void push_dict(const std::vector<PickleValue>& items) {
    const int64_t position = add(document_.dicts, {});
    set_items(PickleValue{PickleKind::kDict, position}, items);
    push(PickleKind::kDict, position);
  }

  void set_items(PickleValue dict, const std::vector<PickleValue>& items) {
    if (dict.kind != PickleKind::kDict || items.size() % 2 != 0)
      fail("items set on what is no dict");
    auto& target = document_.dicts[static_cast<size_t>(dict.bits)];
    for (size_t i = 0; i < items.size(); i += 2) target.emplace_back(items[i], items[i + 1]);
    count_items(items.size() / 2);
  }

  void append(PickleValue list, const std::vector<PickleValue>& items) {
    if (list.kind != PickleKind::kList) fail("items appended to what is no list");
    auto& target = document_.sequences[static_cast<size_t>(list.bits)];
    target.insert(target.end(), items.begin(), items.end());
    count_items(items.size());
  }

  // Items count as objects do: DUP and APPEND would else grow a list for two bytes an item.
  void count_items(size_t count) {
    num_objects_ += count;
    if (num_objects_ > kMaxObjects) fail("too many objects in the pickle");
  }

  // ---- memo ----
  void put(uint32_t index) { memo_[index] = top(); }
  void get(uint32_t index) {
    const auto it = memo_.find(index);
    if (it == memo_.end()) fail("memo entry not set", std::to_string(index));
    push(it->second);
  }

  // ---- classes ----
  std::string_view read_line() {
    const std::string_view rest = ByteCursor(cursor_).text(cursor_.remaining());
    const size_t end = rest.substr(0, kMaxNameChars).find('\n');
    if (end == std::string_view::npos) fail("name of a class without end");
    cursor_.skip(end + 1);
    return rest.substr(0, end);
  }

  void push_global(const std::string& name) {
    const auto it =
        std::find_if(kAllowedGlobals.begin(), kAllowedGlobals.end(),
                     [&](const AllowedGlobal& allowed) { return allowed.name == name; });
    if (it == kAllowedGlobals.end()) refuse(quote(name));
    push(PickleKind::kGlobal, it - kAllowedGlobals.begin());
  }

  void push_named_global() {
    const std::string module(read_line());
    push_global(module + "." + std::string(read_line()));
  }

  void push_stack_global() {
    const std::vector<PickleValue> names = pop_values(2);
    if (names[0].kind != PickleKind::kText || names[1].kind != PickleKind::kText)
      fail("class name is no text");
    push_global(document_.text(names[0]) + "." + document_.text(names[1]));
  }

  const AllowedGlobal& global(PickleValue value, const char* use) const {
    if (value.kind != PickleKind::kGlobal) fail(std::string(use) + " is no class or function");
    return kAllowedGlobals[static_cast<size_t>(value.bits)];
  }

  // Arguments of a call or of a persistent id.
  const std::vector<PickleValue>& tuple(PickleValue value, const char* use) const {
    if (value.kind != PickleKind::kTuple) fail(std::string(use) + " is no tuple");
    return document_.sequence(value);
  }

  int64_t size_value(PickleValue value, const char* use) const {
    if (value.kind != PickleKind::kInt) fail(std::string(use) + " is no integer");
    if (value.bits < 0) fail(std::string(use) + " is negative", std::to_string(value.bits));
    return value.bits;
  }

  std::vector<int64_t> size_tuple(PickleValue value, const char* use) const {
    std::vector<int64_t> sizes;
    if (tuple(value, use).size() > Shape::kMaxDims) {
      fail(std::string(use) + ": too many dimensions", "",
           "at most " + std::to_string(Shape::kMaxDims));
    }
    for (PickleValue item : tuple(value, use)) sizes.push_back(size_value(item, use));
    return sizes;
  }

  // ('storage', class, key, device, number of elements)
  void push_storage() {
    const std::vector<PickleValue>& id = tuple(pop(), "persistent id");
    if (id.size() != 5 || id[0].kind != PickleKind::kText || document_.text(id[0]) != "storage" ||
        id[2].kind != PickleKind::kText || id[3].kind != PickleKind::kText) {
      fail("persistent id is no storage");
    }
    if (document_.text(id[2]).size() > kMaxNameChars) fail("storage key too long");
    const AllowedGlobal& type = global(id[1], "storage type");
    if (type.what != Global::kStorage) fail("storage type is none", std::string(type.name));
    push(PickleKind::kStorage,
         add(document_.storages, PickleStorage{.dtype = type.dtype,
                                               .key = document_.text(id[2]),
                                               .num_elements = size_value(id[4], "storage size")}));
  }

  // (storage, offset, shape, strides[, requires_grad, hooks[, metadata]])
  void push_tensor(const std::vector<PickleValue>& arguments) {
    if (arguments.size() < 4 || arguments.size() > 7 || arguments[0].kind != PickleKind::kStorage) {
      fail("arguments of a tensor");
    }
    PickleTensor tensor{.storage = static_cast<size_t>(arguments[0].bits),
                        .offset = size_value(arguments[1], "tensor offset"),
                        .shape = size_tuple(arguments[2], "tensor shape"),
                        .strides = size_tuple(arguments[3], "tensor strides")};
    push(PickleKind::kTensor, add(document_.tensors, std::move(tensor)));
  }

  void reduce() {
    const PickleValue arguments_value = pop();
    const AllowedGlobal& function = global(pop(), "what is called");
    const std::vector<PickleValue>& arguments = tuple(arguments_value, "arguments of a call");
    switch (function.what) {
      case Global::kOrderedDict:
        if (!arguments.empty()) fail("OrderedDict made with arguments");
        return push_dict({});
      case Global::kRebuildTensor:
        return push_tensor(arguments);
      case Global::kRebuildParameter:
        if (arguments.empty() || arguments[0].kind != PickleKind::kTensor)
          fail("parameter without a tensor");
        return push(arguments[0]);
      case Global::kStorage:
        refuse(quote(function.name) + " called");
    }
  }

  void build() {
    pop();
    if (top().kind != PickleKind::kDict) fail("attributes set on what is no OrderedDict");
  }

  void check_frame() {
    const auto length = cursor_.read<uint64_t>();
    if (length > cursor_.remaining())
      fail("frame past the end of the pickle", std::to_string(length) + " bytes");
  }

  static int64_t big_endian_bits(std::span<const std::byte> bytes) {
    uint64_t bits = 0;
    for (std::byte byte : bytes) bits = bits << 8 | static_cast<uint64_t>(byte);
    return static_cast<int64_t>(bits);
  }

  // Runs one opcode; false at the end. A table: one line an opcode.
  bool step() {
    set_opcode_position(cursor_.position());
    const auto opcode = cursor_.read<uint8_t>();
    switch (opcode) {
      case kProto:
        check_protocol();
        break;
      case kFrame:
        check_frame();
        break;
      case kStop:
        return false;
      case kMark:
        push_mark();
        break;
      case kPop:
        pop();
        break;
      case kPopMark:
        pop_to_mark();
        break;
      case kDup:
        push(top());
        break;
      case kNone:
        push(PickleKind::kNone);
        break;
      case kNewTrue:
        push(PickleKind::kBool, 1);
        break;
      case kNewFalse:
        push(PickleKind::kBool, 0);
        break;
      case kBinInt:
        push(PickleKind::kInt, static_cast<int32_t>(cursor_.read<uint32_t>()));
        break;
      case kBinInt1:
        push(PickleKind::kInt, cursor_.read<uint8_t>());
        break;
      case kBinInt2:
        push(PickleKind::kInt, cursor_.read<uint16_t>());
        break;
      case kLong1:
        push_long(cursor_.read<uint8_t>());
        break;
      case kLong4:
        push_long(cursor_.read<uint32_t>());
        break;
      case kBinFloat:
        push(PickleKind::kFloat, big_endian_bits(cursor_.bytes(8)));
        break;
      case kShortBinUnicode:
        push_text(cursor_.read<uint8_t>());
        break;
      case kBinUnicode:
        push_text(cursor_.read<uint32_t>());
        break;
      case kBinUnicode8:
        push_text(cursor_.read<uint64_t>());
        break;
      case kEmptyDict:
        push_dict({});
        break;
      case kDict:
        push_dict(pop_to_mark());
        break;
      case kSetItem:
        set_items_of_top(pop_values(2));
        break;
      case kSetItems:
        set_items_of_top(pop_to_mark());
        break;
      case kEmptyList:
        push_sequence(PickleKind::kList, {});
        break;
      case kList:
        push_counted_sequence(PickleKind::kList, pop_to_mark());
        break;
      case kAppend:
        append_to_top(pop_values(1));
        break;
      case kAppends:
        append_to_top(pop_to_mark());
        break;
      case kEmptyTuple:
        push_sequence(PickleKind::kTuple, {});
        break;
      case kTuple:
        push_counted_sequence(PickleKind::kTuple, pop_to_mark());
        break;
      case kTuple1:
        push_sequence(PickleKind::kTuple, pop_values(1));
        break;
      case kTuple2:
        push_sequence(PickleKind::kTuple, pop_values(2));
        break;
      case kTuple3:
        push_sequence(PickleKind::kTuple, pop_values(3));
        break;
      case kGlobalOp:
        push_named_global();
        break;
      case kStackGlobal:
        push_stack_global();
        break;
      case kReduce:
        reduce();
        break;
      case kBuild:
        build();
        break;
      case kBinPersId:
        push_storage();
        break;
      case kBinPut:
        put(cursor_.read<uint8_t>());
        break;
      case kLongBinPut:
        put(cursor_.read<uint32_t>());
        break;
      case kMemoize:
        put(static_cast<uint32_t>(memo_.size()));
        break;
      case kBinGet:
        get(cursor_.read<uint8_t>());
        break;
      case kLongBinGet:
        get(cursor_.read<uint32_t>());
        break;
      default:
        refuse(std::string(refused_object(opcode)) + " (opcode " + std::to_string(opcode) + ")");
    }
    return true;
  }

  void set_items_of_top(const std::vector<PickleValue>& items) { set_items(top(), items); }
  void append_to_top(const std::vector<PickleValue>& items) { append(top(), items); }
  void push_counted_sequence(PickleKind kind, std::vector<PickleValue> values) {
    count_items(values.size());
    push_sequence(kind, std::move(values));
  }

  ByteCursor cursor_;
  size_t num_objects_ = 0;
  std::unordered_map<uint32_t, PickleValue> memo_;
  PickleDocument document_;
};

}  // namespace

PickleDocument read_pickle(std::span<const std::byte> bytes, const std::string& where) {
  return Unpickler(bytes, where).run();
}

}  // namespace wam
