#include "wire/field_reader.h"

#include <bit>
#include <cmath>

#include "base/bytes.h"
#include "base/text.h"
#include "wire/format.h"

namespace nowcalls::wire {
namespace {

// Whether `bytes` begin with a float that was an integer: a client has kept it as a double, which
// is exact only below 2^53, so it was another number before.
bool IsRoundedInteger(std::string_view bytes) {
  constexpr double kExactBelow = 9007199254740992.0;  // 2^53
  double value = 0;
  if (bytes.size() >= 5 && static_cast<uint8_t>(bytes[0]) == kFloat32) {
    value = std::bit_cast<float>(LoadBigEndian<uint32_t>(bytes.data() + 1));
  } else if (bytes.size() >= 9 && static_cast<uint8_t>(bytes[0]) == kFloat64) {
    value = std::bit_cast<double>(LoadBigEndian<uint64_t>(bytes.data() + 1));
  }
  return std::isfinite(value) && std::abs(value) >= kExactBelow;
}

}  // namespace

bool FieldReader::OpenArray() {
  uint32_t elements = 0;
  const Reader::Outcome outcome = reader_.ReadArray(&elements);
  if (outcome != Reader::Outcome::kOk) return Explain(outcome, "it", "an array", "");
  due_ = elements;
  return true;
}

// Surplus parameters are refused: a wish that the server does not know must not be lost silently.
bool FieldReader::OpenArray(uint32_t elements_max) {
  if (!OpenArray()) return false;
  if (due_ <= elements_max) return true;
  error_->code = ErrorCode::kBadParams;
  error_->message = std::string(subject_) + " takes at most " + std::to_string(elements_max) +
                    (elements_max == 1 ? " parameter, got " : " parameters, got ") +
                    std::to_string(due_);
  return false;
}

// Elements of later versions are skipped; bytes behind the value are no MessagePack-RPC.
bool FieldReader::Close() {
  while (due_ > 0) {
    if (!Skip("it")) return false;
  }
  return reader_.AtEnd() || Fail(ErrorCode::kMalformed, "it", "is followed by stray bytes");
}

bool FieldReader::Read(std::string_view name, uint32_t* value) {
  uint64_t wide = 0;
  if (!Read(name, &wide)) return false;
  if (wide > UINT32_MAX) return Fail(name, "must fit an unsigned 32-bit integer");
  *value = static_cast<uint32_t>(wide);
  return true;
}

bool FieldReader::Read(std::string_view name, bool* value) {
  const Reader::Outcome outcome = reader_.ReadBool(value);
  --due_;
  return outcome == Reader::Outcome::kOk || Explain(outcome, name, "a bool", "");
}

bool FieldReader::Read(std::string_view name, std::string_view* value) {
  const Reader::Outcome outcome = reader_.ReadString(value);
  --due_;
  if (outcome != Reader::Outcome::kOk) return Explain(outcome, name, "a str", "");
  if (value->size() <= string_bytes_max_) return true;
  return Fail(name, "of " + std::to_string(value->size()) + " bytes exceeds " +
                        std::to_string(string_bytes_max_));
}

bool FieldReader::Read(std::string_view name, std::string* value) {
  std::string_view view;
  if (!Read(name, &view)) return false;
  value->assign(view);
  return true;
}

// `of_int`: why the value is no int64.
bool FieldReader::ReadStrInstead(Reader::Outcome of_int, std::string_view name,
                                 std::string_view* text) {
  if (reader_.Peek() == Kind::kStr) return Read(name, text);
  --due_;
  return ExplainInteger(of_int, name, "an integer or a str", "a signed");
}

bool FieldReader::OpenMap(std::string_view name, uint32_t* pairs) {
  const Reader::Outcome outcome = reader_.ReadMap(pairs);
  --due_;
  return outcome == Reader::Outcome::kOk || Explain(outcome, name, "a map", "");
}

bool FieldReader::OpenList(std::string_view name, uint32_t* elements) {
  const Reader::Outcome outcome = reader_.ReadArray(elements);
  --due_;
  return outcome == Reader::Outcome::kOk || Explain(outcome, name, "an array", "");
}

bool FieldReader::ReadKey(std::string_view* key) {
  const Reader::Outcome outcome = reader_.ReadString(key);
  return outcome == Reader::Outcome::kOk || Explain(outcome, "key", "a str", "");
}

bool FieldReader::FailTooLong(std::string_view name, uint32_t elements_max, uint32_t elements) {
  return Fail(name, "takes at most " + std::to_string(elements_max) + " elements, got " +
                        std::to_string(elements));
}

bool FieldReader::Raw(std::string_view name, std::string_view* bytes) {
  if (due_ == 0) return Fail(name, "is missing");
  const Reader::Outcome outcome = reader_.Skip(bytes);
  --due_;
  return outcome == Reader::Outcome::kOk || Explain(outcome, name, "a value", "");
}

bool FieldReader::Skip(std::string_view name) {
  std::string_view ignored;
  return Raw(name, &ignored);
}

// Turns the outcome of a failed read into the error. `range`: the words for kOutOfRange.
bool FieldReader::Explain(Reader::Outcome outcome, std::string_view name, std::string_view wanted,
                          std::string_view range) {
  // Only bytes that no splitter has checked are cut off.
  if (outcome == Reader::Outcome::kCutOff) {
    return Fail(ErrorCode::kMalformed, name, "is cut off");
  }
  if (outcome == Reader::Outcome::kOutOfRange) return Fail(name, range);
  return Fail(name,
              "must be " + std::string(wanted) + ", got " + std::string(KindName(reader_.Peek())));
}

bool FieldReader::ExplainInteger(Reader::Outcome outcome, std::string_view name,
                                 std::string_view wanted, std::string_view which) {
  // The failed read took nothing, so rest() still begins with the value.
  if (outcome == Reader::Outcome::kWrongKind && IsRoundedInteger(reader_.rest())) {
    return Fail(name,
                "must be an integer, got a float of 2^53 or more, which is a rounded integer: ids "
                "have 63 bits, so decode and encode them as 64-bit integers (in JavaScript as "
                "BigInt, by useBigInt64 of @msgpack/msgpack)");
  }
  return Explain(outcome, name, wanted, "must fit " + std::string(which) + " 64-bit integer");
}

bool FieldReader::Fail(ErrorCode code, std::string_view name, std::string_view what) {
  error_->code = code;
  error_->message = std::string(subject_) + ": ";
  if (!scope_.empty()) error_->message += std::string(scope_) + ".";
  error_->message += std::string(name) + " " + std::string(what);
  return false;
}

bool FieldReader::FailUnknown(std::string_view key) {
  // The key is a peer's: it is quoted unless it can be shown safely.
  constexpr size_t kShownBytes = 64;
  const bool as_it_is = key.size() <= kShownBytes && IsPrintable(key);
  return Fail(as_it_is ? std::string(key) : Quoted(key, kShownBytes), "is not known");
}

}  // namespace nowcalls::wire
