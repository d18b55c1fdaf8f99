#include "wam/graph/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <map>
#include <sstream>

#include "wam/base/check.h"
#include "wam/base/hash.h"
#include "wam/graph/op_def.h"

namespace wam {
namespace {

constexpr int64_t kMaxPrintedConstant = 64;
constexpr std::string_view kPhases[] = {"forward", "backward", "update"};

std::string print_constant(const HostTensor& data) {
  if (data.num_elements() > kMaxPrintedConstant) {
    const auto* bytes = static_cast<const std::byte*>(data.data());
    return fmt::format("#{:016x}", hash64({bytes, static_cast<size_t>(data.size_bytes())}));
  }
  const HostTensor wide = data.to(DType::kF64);
  std::string text;
  for (const double x : wide.as<double>()) text += (text.empty() ? "" : ",") + fmt::format("{}", x);
  return "[" + text + "]";
}

std::string join_ids(std::span<const ValueId> ids) {
  std::string text;
  for (const ValueId id : ids) text += (text.empty() ? "%" : ", %") + std::to_string(id.index);
  return text;
}

std::string print_source(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const std::string head = fmt::format("  %{} = ", id.index);
  const std::string type = value.type.to_string();
  switch (value.kind) {
    case ValueKind::kInput: return head + fmt::format("input \"{}\" : {}\n", value.name, type);
    case ValueKind::kState:
      return head + fmt::format("state \"{}\" {} {} {} : {}\n", value.name, value.placement.region,
                                value.placement.offset_bytes, name(value.placement.role), type);
    case ValueKind::kConstant:
      return head + fmt::format("constant \"{}\" {} : {}\n", value.name,
                                print_constant(value.constant), type);
    case ValueKind::kIntermediate: return "";
  }
  return "";
}

std::string print_node(const Graph& graph, const Node& node) {
  std::string types;
  for (const ValueId output : node.outputs) {
    types += (types.empty() ? "" : ", ") + graph.type(output).to_string();
  }
  return fmt::format("  {} = {}{}({}) : {}  // {} {} {}{}\n", join_ids(node.outputs), node.op->name,
                     node.attrs.to_string(), join_ids(node.inputs), types,
                     kPhases[static_cast<size_t>(node.phase)], node.block,
                     node.recomputed ? "again " : "", node.label);
}

// A cursor over one line.
class Line {
 public:
  Line(std::string_view text, int number) : text_(text), number_(number) {}
  [[noreturn]] void fail(const std::string& expected) const {
    throw GraphError({.where = "graph text line " + std::to_string(number_),
                      .what = "cannot be parsed",
                      .got = "'" + std::string(text_.substr(at_, 40)) + "'",
                      .expected = expected});
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("'" + std::string(token) + "'");
  }
  std::string until(std::string_view stops) {
    skip_spaces();
    const size_t end = std::min(text_.find_first_of(stops, at_), text_.size());
    std::string word(text_.substr(at_, end - at_));
    at_ = end;
    return word;
  }
  std::string word() { return until(" ,:()[]{}=\"%"); }
  std::string quoted() {
    expect("\"");
    const size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) fail("a closing quote");
    std::string word(text_.substr(at_, end - at_));
    at_ = end + 1;
    return word;
  }
  template <typename T>
  T number() {
    skip_spaces();
    T value{};
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  // An attribute's number: integers have neither point, exponent nor name (inf, nan).
  AttrValue attr_number() {
    skip_spaces();
    const size_t end = std::min(text_.find_first_of(",]}", at_), text_.size());
    const bool real = text_.substr(at_, end - at_).find_first_of(".enf") != std::string_view::npos;
    if (real) return number<double>();
    return number<int64_t>();
  }
  bool at_end() {
    skip_spaces();
    return at_ >= text_.size();
  }
  std::string rest() {
    skip_spaces();
    return std::string(text_.substr(at_));
  }

 private:
  std::string_view text_;
  int number_;
  size_t at_ = 0;
};

class Parser {
 public:
  Parser(std::string_view text, const OpLookup& find_op) : text_(text), find_op_(find_op) {}

  Graph run() {
    std::istringstream stream{std::string(text_)};
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
      Line cursor(line, ++number);
      if (cursor.at_end() || cursor.accept("}")) continue;
      if (cursor.accept("graph ")) {
        graph_ = Graph(cursor.word());
      } else if (cursor.accept("output ")) {
        const std::string name = cursor.quoted();
        graph_.add_output(name, use(cursor));
      } else if (cursor.accept("update ")) {
        const ValueId state = use(cursor);
        cursor.expect("<-");
        graph_.add_update(state, use(cursor));
      } else {
        definition(cursor);
      }
    }
    return std::move(graph_);
  }

 private:
  ValueId use(Line& line) {
    line.expect("%");
    const auto found = ids_.find(line.number<int32_t>());
    if (found == ids_.end()) line.fail("a value defined above");
    return found->second;
  }

  TensorType type(Line& line) {
    const DType dtype = parse_dtype(line.word());
    std::vector<int64_t> dims;
    line.expect("[");
    while (!line.accept("]")) {
      dims.push_back(line.number<int64_t>());
      line.accept(",");
    }
    return {dtype, Shape(dims)};
  }

  void definition(Line& line) {
    std::vector<int32_t> outputs;
    do {
      line.expect("%");
      outputs.push_back(line.number<int32_t>());
    } while (line.accept(","));
    line.expect("=");
    if (line.accept("input ")) {
      const std::string name = line.quoted();
      line.expect(":");
      ids_[outputs[0]] = graph_.add_input(name, type(line));
    } else if (line.accept("state ")) {
      ids_[outputs[0]] = state(line);
    } else if (line.accept("constant ")) {
      ids_[outputs[0]] = constant(line);
    } else {
      node(line, outputs);
    }
  }

  ValueId state(Line& line) {
    const std::string name = line.quoted();
    Placement placement{.region = line.until(" ")};
    placement.offset_bytes = line.number<int64_t>();
    const std::string role = line.word();
    while (wam::name(placement.role) != role) {
      if (placement.role == StateRole::kCache) line.fail("a role of states");
      placement.role = static_cast<StateRole>(static_cast<int>(placement.role) + 1);
    }
    line.expect(":");
    return graph_.add_state(name, type(line), placement);
  }

  ValueId constant(Line& line) {
    const std::string name = line.quoted();
    if (!line.accept("[")) line.fail("the values of the constant");
    std::vector<double> values;
    while (!line.accept("]")) {
      values.push_back(line.number<double>());
      line.accept(",");
    }
    line.expect(":");
    const TensorType wanted = type(line);
    if (wanted.shape.num_elements() != static_cast<int64_t>(values.size())) {
      line.fail("as many values as the type has elements");
    }
    HostTensor wide(DType::kF64, wanted.shape);
    std::memcpy(wide.data(), values.data(), values.size() * sizeof(double));
    return graph_.add_constant(wide.to(wanted.dtype), name);
  }

  AttrValue attr_value(Line& line) {
    if (line.accept("true")) return true;
    if (line.accept("false")) return false;
    if (line.accept("[")) return attr_list(line);
    if (line.rest().starts_with('"')) return line.quoted();
    return line.attr_number();
  }

  static AttrValue attr_list(Line& line) {
    std::vector<int64_t> integers;
    std::vector<double> reals;
    while (!line.accept("]")) {
      const AttrValue value = line.attr_number();
      if (const auto* integer = std::get_if<int64_t>(&value)) integers.push_back(*integer);
      if (const auto* real = std::get_if<double>(&value)) reals.push_back(*real);
      line.accept(",");
    }
    if (!reals.empty()) return reals;
    return integers;
  }

  void node(Line& line, const std::vector<int32_t>& outputs) {
    Node node;
    const std::string name = line.word();
    node.op = find_op_(name);
    if (node.op == nullptr) line.fail("the name of an op instead of '" + name + "'");
    if (line.accept("{")) {
      while (!line.accept("}")) {
        const std::string key = line.word();
        line.expect("=");
        node.attrs.set(key, attr_value(line));
        line.accept(",");
      }
    }
    line.expect("(");
    while (!line.accept(")")) {
      node.inputs.push_back(use(line));
      line.accept(",");
    }
    line.expect(":");
    std::vector<TensorType> types;
    do {
      types.push_back(type(line));
    } while (line.accept(","));
    if (types.size() != outputs.size()) line.fail("one type for each output");
    if (line.accept("//")) mark(line, node);
    const NodeId id = graph_.add_node(std::move(node), types);
    for (size_t i = 0; i < outputs.size(); ++i) ids_[outputs[i]] = graph_.node(id).outputs[i];
  }

  static void mark(Line& line, Node& node) {
    const std::string phase = line.word();
    for (int i = 0; i < 3; ++i) {
      if (kPhases[i] == phase) node.phase = static_cast<Phase>(i);
    }
    node.block = line.number<int>();
    node.recomputed = line.accept("again ");
    node.label = line.rest();
  }

  std::string_view text_;
  const OpLookup& find_op_;
  Graph graph_;
  std::map<int32_t, ValueId> ids_;
};

}  // namespace

std::string print(const Graph& graph) {
  std::string text = "graph " + graph.name() + " {\n";
  for (int i = 0; i < graph.num_values(); ++i) text += print_source(graph, ValueId{i});
  for (const NodeId id : graph.order()) text += print_node(graph, graph.node(id));
  for (const NamedValue& output : graph.outputs()) {
    text += fmt::format("  output \"{}\" %{}\n", output.name, output.value.index);
  }
  for (const StateUpdate& update : graph.updates()) {
    text += fmt::format("  update %{} <- %{}\n", update.state.index, update.value.index);
  }
  return text + "}\n";
}

Graph parse_graph(std::string_view text, const OpLookup& find_op) {
  return Parser(text, find_op).run();
}

}  // namespace wam
