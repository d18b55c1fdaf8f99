#include "wam/data/python_literal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/data/unicode.h"

namespace wam::data {
namespace {

// A parsed value: its str() and repr(), and the str() of its elements if it is a list or tuple.
struct Value {
  std::string str, repr;
  bool is_sequence = false;
  std::vector<std::string> elements;
};

struct NotALiteral {};

constexpr int kMaxDepth = 50;  // nested brackets; deeper text is taken as it is

std::string repr_of(const std::string& text) {
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (char c : text) {
    if (c == quote || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else
      out += c;
  }
  return out + quote;
}

// Python's repr of a float: shortest digits that read back, exponent from 1e16 on and below 1e-4.
std::string float_text(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string shortest(buffer.data(), end);
  const int exponent = std::stoi(shortest.substr(shortest.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return shortest;
  const auto fixed_end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed)
          .ptr;
  std::string fixed(buffer.data(), fixed_end);
  if (fixed.find('.') == fixed.npos) fixed += ".0";
  return fixed;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Value parse() {
    skip_blank_lines();
    Value value = tuple_or_value('\0');
    skip_space();
    if (at_ != text_.size()) throw NotALiteral{};
    return value;
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void skip_space() {
    const auto space = [&](char c) {
      return c == ' ' || c == '\t' || c == '\f' || ((c == '\n' || c == '\r') && depth_ > 0);
    };
    while (at_ < text_.size() && space(text_[at_])) ++at_;
    // Line ends outside brackets may only stand at the very end.
    if (depth_ == 0 && trim(text_.substr(at_)).empty()) at_ = text_.size();
  }

  // Empty lines may come first; white space before the value only if there are none.
  void skip_blank_lines() {
    const size_t first = std::min(text_.find_first_not_of(" \t\f\r\n"), text_.size());
    const size_t line = text_.substr(0, first).rfind('\n');
    if (line != text_.npos && line + 1 != first) throw NotALiteral{};
    at_ = first;
  }

  static Value sequence(const std::vector<Value>& items, bool is_list) {
    Value result;
    result.is_sequence = true;
    std::string inside;
    for (const Value& item : items) {
      result.elements.push_back(item.str);
      inside += (inside.empty() ? "" : ", ") + item.repr;
    }
    if (!is_list && items.size() == 1) inside += ",";
    result.repr = is_list ? "[" + inside + "]" : "(" + inside + ")";
    result.str = result.repr;
    return result;
  }

  // Values up to `close` (or the end of the text); `had_comma` tells "(1)" from "(1,)".
  std::vector<Value> items(char close, bool& had_comma) {
    std::vector<Value> result;
    bool separated = true;
    while (true) {
      skip_space();
      if (peek() == close && (close != '\0' || at_ == text_.size())) return result;
      if (!separated) throw NotALiteral{};
      result.push_back(value());
      skip_space();
      separated = take(",");
      had_comma |= separated;
    }
  }

  Value tuple_or_value(char close) {
    bool had_comma = false;
    std::vector<Value> values = items(close, had_comma);
    if (close == '\0' && values.empty()) throw NotALiteral{};
    return values.size() == 1 && !had_comma ? values[0] : sequence(values, false);
  }

  Value bracketed(char close) {
    if (++depth_ > kMaxDepth) throw NotALiteral{};
    const size_t begin = at_++;
    Value result;
    bool had_comma = false;
    if (close == ')')
      result = tuple_or_value(close);
    else if (close == ']')
      result = sequence(items(close, had_comma), true);
    else
      skip_braces();
    if (!take({&close, 1})) throw NotALiteral{};
    --depth_;
    if (close == '}') result.str = result.repr = text_.substr(begin, at_ - begin);
    return result;
  }

  // Inside a dict or set: values, commas and colons.
  void skip_braces() {
    skip_space();
    while (peek() != '}') {
      value();
      skip_space();
      if (!take(",") && !take(":") && peek() != '}') throw NotALiteral{};
      skip_space();
    }
  }

  Value value() {
    skip_space();
    const char c = peek();
    if (c == '(') return bracketed(')');
    if (c == '[') return bracketed(']');
    if (c == '{') return bracketed('}');
    if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')) return number();
    for (const char* word : {"True", "False", "None"}) {
      if (take(word)) return word_value(word);
    }
    return strings();
  }

  Value word_value(const char* word) {
    if (is_name_char(peek())) throw NotALiteral{};
    return {word, word, false, {}};
  }

  static bool is_name_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c & 0x80) != 0;
  }

  Value number() {
    if (take("...")) return {"Ellipsis", "Ellipsis", false, {}};
    const std::string sign = peek() == '-' ? "-" : "";
    if (peek() == '-' || peek() == '+') ++at_;
    skip_space();
    const size_t begin = at_;
    while (is_name_char(peek()) || peek() == '.' || is_exponent_sign(begin)) ++at_;
    const std::string digits = without_underscores(text_.substr(begin, at_ - begin));
    const std::string text = number_text(digits);
    const bool zero = text == "0";
    const std::string shown = zero ? text : sign + text;
    return {shown, shown, false, {}};
  }

  bool is_exponent_sign(size_t begin) const {
    if (peek() != '-' && peek() != '+') return false;
    const bool hex = text_.size() > begin + 1 && (text_[begin + 1] | 0x20) == 'x';
    return !hex && at_ > begin && (text_[at_ - 1] | 0x20) == 'e';
  }

  // Of any base, or the letter that names the base.
  static bool is_digit(char c) { return is_name_char(c) && c != '_'; }

  static std::string without_underscores(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '_') {
        result += text[i];
        continue;
      }
      if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
        throw NotALiteral{};
      }
    }
    return result;
  }

  static std::string number_text(const std::string& digits) {
    if (digits.empty()) throw NotALiteral{};
    if (digits.size() > 2 && digits[0] == '0' && is_base(digits[1])) return based_text(digits);
    if (digits.find_first_not_of("0123456789") == digits.npos) return decimal_text(digits);
    double value = 0;
    const char* end = digits.data() + digits.size();
    // Only digits, a point and an exponent: neither "inf" nor "nan" are numbers here.
    if (digits.find_first_not_of("0123456789.eE+-") != digits.npos) throw NotALiteral{};
    const auto read = std::from_chars(digits.data(), end, value);
    if (read.ec == std::errc::invalid_argument || read.ptr != end) throw NotALiteral{};
    if (read.ec != std::errc()) throw NotALiteral{};
    return float_text(value);
  }

  static bool is_base(char c) {
    const char lower = static_cast<char>(c | 0x20);
    return lower == 'x' || lower == 'o' || lower == 'b';
  }

  static std::string based_text(const std::string& digits) {
    const char kind = static_cast<char>(digits[1] | 0x20);
    uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : 2;
    const auto read = std::from_chars(digits.data() + 2, end, value, base);
    if (read.ec != std::errc() || read.ptr != end) throw NotALiteral{};
    return std::to_string(value);
  }

  static std::string decimal_text(const std::string& digits) {
    const size_t first = digits.find_first_not_of('0');
    if (first == digits.npos) return "0";
    if (first != 0) throw NotALiteral{};  // 007 is a syntax error
    return digits;
  }

  // One or more string literals side by side.
  Value strings() {
    std::string text;
    bool any = false;
    const size_t begin = at_;
    bool bytes = false;
    while (true) {
      skip_space();
      bool raw = false, is_bytes = false;
      size_t prefix = 0;
      while (prefix < 2 && is_prefix(peek(prefix), raw, is_bytes)) ++prefix;
      if (peek(prefix) != '\'' && peek(prefix) != '"') break;
      at_ += prefix;
      text += string_body(raw);
      bytes |= is_bytes;
      any = true;
    }
    if (!any) throw NotALiteral{};
    if (bytes) text = trim(text_.substr(begin, at_ - begin));
    return {text, bytes ? text : repr_of(text), false, {}};
  }

  static bool is_prefix(char c, bool& raw, bool& bytes) {
    const char lower = static_cast<char>(c | 0x20);
    raw |= lower == 'r';
    bytes |= lower == 'b';
    return lower == 'r' || lower == 'b' || lower == 'u';
  }

  std::string string_body(bool raw) {
    const char quote = peek();
    const std::string triple(3, quote);
    const bool is_triple = take(triple);
    if (!is_triple) ++at_;
    std::string body;
    while (at_ < text_.size()) {
      if (is_triple ? take(triple) : take({&quote, 1})) return body;
      const char c = text_[at_];
      if (c == '\n' && !is_triple) throw NotALiteral{};
      if (c == '\\')
        append_escape(raw, body);
      else
        body += text_[at_++];
    }
    throw NotALiteral{};
  }

  void append_escape(bool raw, std::string& body) {
    const char c = peek(1);
    if (at_ + 1 >= text_.size()) throw NotALiteral{};
    if (raw) {
      body += {'\\', c};
      at_ += 2;
      return;
    }
    static constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    at_ += 2;
    if (const size_t i = kFrom.find(c); i != kFrom.npos)
      body += kTo[i];
    else if (c == '\n')
      return;
    else if (c == 'x')
      append_code(2, 16, body);
    else if (c == 'u')
      append_code(4, 16, body);
    else if (c == 'U')
      append_code(8, 16, body);
    else if (c == 'N')
      throw NotALiteral{};
    else if (c >= '0' && c <= '7')
      append_octal(body);
    else
      body += {'\\', c};
  }

  void append_octal(std::string& body) {
    --at_;
    size_t digits = 0;
    while (digits < 3 && peek(digits) >= '0' && peek(digits) <= '7') ++digits;
    append_code(digits, 8, body);
  }

  void append_code(size_t digits, int base, std::string& body) {
    uint32_t code = 0;
    if (at_ + digits > text_.size()) throw NotALiteral{};
    const char* first = text_.data() + at_;
    const auto read = std::from_chars(first, first + digits, code, base);
    if (read.ec != std::errc() || read.ptr != first + digits) throw NotALiteral{};
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) throw NotALiteral{};
    const char32_t c = code;
    body += encode_utf8({&c, 1});
    at_ += digits;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string literal_instruction(std::string_view text) {
  Value value;
  try {
    value = Parser(text).parse();
  } catch (const NotALiteral&) {
    return std::string(text);
  }
  if (!value.is_sequence) return value.str;
  if (!value.elements.empty()) return value.elements[0];
  throw DataError({.where = "instruction " + quote(text, 60),
                   .what = "an empty list, no instruction in it",
                   .expected = "text, or a list with text",
                   .remedy = "Give the row an instruction."});
}

}  // namespace wam::data
