#include "core/rules/rule_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/json_shape.h"
#include "base/limits.h"
#include "base/text.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

constexpr char kNotJson[] = "not valid JSON: ";
// Bounds the memory that a hostile text takes.
constexpr size_t kRepeatedMax = 1'000'000;

// The parser's message as a short printable line: it quotes any bytes, of any length. The code in
// brackets in front, such as "[json.exception.parse_error.101]", is left out.
std::string ParserMessage(std::string_view what) {
  constexpr size_t kMessageBytes = 200;
  if (const size_t end = what.find("] "); end != std::string_view::npos)
    what.remove_prefix(end + 2);
  const std::string quoted = Quoted(what, kMessageBytes);
  return quoted.substr(1, quoted.size() - 2);
}

// The line of the first number that no double holds. The parser tells the line of every other
// mistake.
size_t LineOfOverflow(const std::string& text) {
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    char* behind = nullptr;
    if (c == '"') {
      i = EndOfJsonString(text, i);
    } else if (c != '-' && (c < '0' || c > '9')) {
      ++i;
    } else if (std::isinf(std::strtod(&text[i], &behind))) {
      break;
    } else {
      i = std::max<size_t>(i + 1, behind - text.data());
    }
  }
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(i);
  return 1 + std::count(text.begin(), end, '\n');
}

// The first byte behind the comment that begins at `i`. `i`: no comment begins there. npos: the
// comment is not closed.
size_t EndOfComment(std::string_view text, size_t i) {
  const std::string_view opening = text.substr(i, 2);
  if (opening == "//") return std::min(text.find_first_of("\r\n", i), text.size());
  if (opening != "/*") return i;
  const size_t closing = text.find("*/", i + 2);
  return closing == std::string_view::npos ? closing : closing + 2;
}

// The text with blanks for comments; its lines stay. The parser then knows no comments: if it
// found other ends of comments than ShapeOfJson does, the bounds would not hold.
Result<std::string> WithoutComments(std::string_view text) {
  std::string plain(text);
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      i = EndOfJsonString(text, i);
      continue;
    }
    const size_t end = EndOfComment(text, i);
    if (end == std::string_view::npos) {
      const auto line = 1 + std::ranges::count(text.substr(0, i), '\n');
      return Status::InvalidArgument("not valid JSON: a comment is not closed; it begins in line " +
                                     std::to_string(line));
    }
    if (end == i) ++i;
    for (; i < end; ++i) plain[i] = text[i] == '\n' ? '\n' : ' ';
  }
  return plain;
}

// Twice the values of rules_max rules as Sentinel's dashboard writes them.
constexpr JsonShape kShapeMax{.depth = kRuleJsonNestingMax, .values = 10'000'000};

// The bound that a text without comments exceeds, or nullopt. Depth: writing a value into a message
// recurses. Values: the document of "{},{}" takes many times the memory of its text.
std::optional<std::string> Excess(std::string_view text) {
  const JsonShape shape = ShapeOfJson(text, kShapeMax);
  if (shape.depth > kShapeMax.depth) {
    return "is nested deeper than " + std::to_string(kShapeMax.depth) + " levels";
  }
  if (shape.values > kShapeMax.values) {
    return "holds more than " + std::to_string(kShapeMax.values) + " values";
  }
  return std::nullopt;
}

// Builds the document and notes the keys that come twice. The library's own builder with a callback
// takes quadratic time for an array of objects.
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(json* document, std::vector<RepeatedKey>* repeated)
      : document_(document), repeated_(repeated) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t& value) override { return Add(std::move(value)); }
  bool start_object(std::size_t /*size*/) override { return Open(json::object()); }
  bool start_array(std::size_t /*size*/) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    if (!open_.back().value->contains(open_.back().key)) return true;
    if (repeated_->size() == kRepeatedMax) {
      error_ = "more than " + std::to_string(kRepeatedMax) + " keys appear twice in their objects";
      return false;
    }
    repeated_->push_back({document_->is_array() ? document_->size() : 0, Path()});
    return true;
  }

  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const json::exception& e) override {
    constexpr int kOverflow = 406;  // "number overflow", which names no line.
    is_overflow_ = e.id == kOverflow;
    error_ = kNotJson + ParserMessage(e.what());
    return false;
  }

  const std::string& error() const { return error_; }
  bool is_overflow() const { return is_overflow_; }

 private:
  // An array or object that is not closed yet.
  struct Frame {
    json* value;
    std::string key;  // Of the member that is being read.
  };

  // Only the last element of an array may be open, so that no pointer into one goes stale.
  json* Put(json value) {
    if (open_.empty()) {
      *document_ = std::move(value);
      return document_;
    }
    const Frame& frame = open_.back();
    if (frame.value->is_array()) {
      frame.value->push_back(std::move(value));
      return &frame.value->back();
    }
    json& member = (*frame.value)[frame.key];
    member = std::move(value);
    return &member;
  }

  bool Add(json scalar) {
    Put(std::move(scalar));
    return true;
  }

  bool Open(json empty) {
    open_.push_back({Put(std::move(empty)), {}});
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  // Cut where messages would not show more: keys may be as long as the text.
  std::string Path() const {
    constexpr size_t kPathBytesMax = 64;
    std::string path;
    for (const Frame& frame : open_) {
      if (!frame.value->is_object()) continue;
      if (!path.empty()) path += '.';
      path.append(frame.key, 0, kPathBytesMax);
      if (path.size() > kPathBytesMax) return path.substr(0, kPathBytesMax) + "...";
    }
    return path;
  }

  json* const document_;
  std::vector<RepeatedKey>* const repeated_;
  std::vector<Frame> open_;
  std::string error_;
  bool is_overflow_ = false;
};

Status CheckEncoding(std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return Status::InvalidArgument(std::string(kNotJson) + "the text is UTF-16; save it as UTF-8");
  }
  // The parser takes a NUL for the end of the text.
  if (text.find('\0') != std::string_view::npos) {
    return Status::InvalidArgument(std::string(kNotJson) + "it contains a NUL byte");
  }
  return {};
}

// Whether nothing but blanks is left of a text without comments.
bool IsEmpty(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

Status ReadRuleText(std::string_view text, json* document, std::vector<RepeatedKey>* repeated) {
  NOWCALLS_RETURN_IF_ERROR(CheckEncoding(text));
  const Result<std::string> plain = WithoutComments(text);
  if (!plain.ok()) return plain.status();
  if (IsEmpty(*plain)) {
    return Status::InvalidArgument(std::string(kNotJson) +
                                   "the text is empty; [] stands for a set without rules");
  }
  if (const auto excess = Excess(*plain)) return Status::InvalidArgument("JSON " + *excess);
  Builder builder(document, repeated);
  if (json::sax_parse(*plain, &builder)) return {};
  if (!builder.is_overflow()) return Status::InvalidArgument(builder.error());
  return Status::InvalidArgument(kNotJson + ("line " + std::to_string(LineOfOverflow(*plain))) +
                                 ": " + builder.error().substr(std::string_view(kNotJson).size()));
}

}  // namespace nowcalls::core
