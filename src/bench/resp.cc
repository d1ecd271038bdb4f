#include "bench/resp.h"

#include <charconv>

namespace nowcalls::bench {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";
// Longer lines are none of a server's: a bulk string brings its bytes behind the line.
constexpr size_t kLineBytesMax = 64 * 1024;

bool ReadNumber(std::string_view digits, int64_t* number) {
  const char* const end = digits.data() + digits.size();
  const auto [last, error] = std::from_chars(digits.data(), end, *number);
  return error == std::errc() && last == end;
}

// A bulk string whose head `line` has been read; `rest` is what follows the line.
RespOutcome TakeBulk(std::string_view line, std::string_view rest, std::string_view* input,
                     RespValue* value) {
  int64_t size = 0;
  if (!ReadNumber(line, &size) || size < -1 || size > kRespBulkBytesMax) {
    return RespOutcome::kInvalid;
  }
  if (size == -1) {
    value->kind = RespKind::kNull;
    *input = rest;
    return RespOutcome::kValue;
  }
  const auto bytes = static_cast<size_t>(size);
  // Nothing is taken until the string is whole, so the next call reads the head again.
  if (rest.size() < bytes + kEndOfLine.size()) return RespOutcome::kIncomplete;
  if (rest.substr(bytes, kEndOfLine.size()) != kEndOfLine) return RespOutcome::kInvalid;
  value->kind = RespKind::kBulk;
  value->text = rest.substr(0, bytes);
  *input = rest.substr(bytes + kEndOfLine.size());
  return RespOutcome::kValue;
}

// ":1\r\n" and its like, which is nearly all that a load is answered.
bool TakeDigit(std::string_view* input, RespValue* value) {
  constexpr size_t kBytes = 4;
  if (input->size() < kBytes) return false;
  const char* const at = input->data();
  if (at[0] != ':' || at[1] < '0' || at[1] > '9' || at[2] != '\r' || at[3] != '\n') return false;
  *value = {RespKind::kInteger, at[1] - '0', {}};
  input->remove_prefix(kBytes);
  return true;
}

}  // namespace

void AppendRespArray(size_t elements, std::string* out) {
  *out += '*';
  *out += std::to_string(elements);
  *out += kEndOfLine;
}

void AppendRespBulk(std::string_view text, std::string* out) {
  *out += '$';
  *out += std::to_string(text.size());
  *out += kEndOfLine;
  *out += text;
  *out += kEndOfLine;
}

std::string RespCommand(std::initializer_list<std::string_view> words) {
  std::string command;
  AppendRespArray(words.size(), &command);
  for (const std::string_view word : words) AppendRespBulk(word, &command);
  return command;
}

RespOutcome TakeResp(std::string_view* input, RespValue* value) {
  // The short way for nearly all answers of a load.
  if (TakeDigit(input, value)) return RespOutcome::kValue;
  // The first line: a type and a number or a text.
  if (input->empty()) return RespOutcome::kIncomplete;
  const size_t end = input->find(kEndOfLine);
  if (end == std::string_view::npos) {
    return input->size() > kLineBytesMax ? RespOutcome::kInvalid : RespOutcome::kIncomplete;
  }
  const char type = input->front();
  const std::string_view line = input->substr(1, end - 1);
  const std::string_view rest = input->substr(end + kEndOfLine.size());
  *value = {};
  switch (type) {
    case '+':
    case '-':
      value->kind = type == '+' ? RespKind::kSimple : RespKind::kError;
      value->text = line;
      break;
    case ':':
      value->kind = RespKind::kInteger;
      if (!ReadNumber(line, &value->integer)) return RespOutcome::kInvalid;
      break;
    case '*':
      if (!ReadNumber(line, &value->integer) || value->integer < -1 ||
          value->integer > kRespElementsMax) {
        return RespOutcome::kInvalid;
      }
      value->kind = value->integer < 0 ? RespKind::kNull : RespKind::kArray;
      break;
    case '$': return TakeBulk(line, rest, input, value);
    default: return RespOutcome::kInvalid;
  }
  *input = rest;
  return RespOutcome::kValue;
}

}  // namespace nowcalls::bench
