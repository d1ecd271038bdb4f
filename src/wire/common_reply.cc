// TakeCommonReply: the quick way of reading, in one pass.
#include <cstring>

#include "base/bytes.h"
#include "wire/client_messages.h"
#include "wire/format.h"

namespace nowcalls::wire {
namespace {

// Takes the parts of a response off its front as long as they are the expected ones. Any other form
// is no error: TakeCommonReply falls back to the general decoders.
class CommonReader {
 public:
  explicit CommonReader(std::string_view input)
      : at_(input.data()), end_(input.data() + input.size()) {}

  // The bytes of a literal, without its closing zero.
  template <size_t kSize>
  bool Take(const char (&bytes)[kSize]) {
    if (left() < kSize - 1 || std::memcmp(at_, bytes, kSize - 1) != 0) return false;
    at_ += kSize - 1;
    return true;
  }

  // Branches rather than a table of sizes: a field nearly always has the same size, so the
  // processor knows where the next field begins before this one is read.
  bool TakeUint(uint64_t* value) {
    if (left() == 0) return false;
    const auto type = static_cast<uint8_t>(*at_);
    if (type <= kPositiveFixintLast) {
      *value = type;
      ++at_;
      return true;
    }
    switch (type) {
      case kUint8: return TakeFixed<uint8_t>(value);
      case kUint16: return TakeFixed<uint16_t>(value);
      case kUint32: return TakeFixed<uint32_t>(value);
      case kUint64: return TakeFixed<uint64_t>(value);
      default: return false;
    }
  }

  bool TakeShortString(std::string_view* value) {
    if (left() == 0) return false;
    const auto type = static_cast<uint8_t>(*at_);
    if (type < kFixstrFirst || type > kFixstrLast) return false;
    const size_t size = type - kFixstrFirst;
    if (left() < 1 + size) return false;
    *value = {at_ + 1, size};
    at_ += 1 + size;
    return true;
  }

  // The value of a parameter: an int, float, bool or str. A str of 64 KiB or more cannot be one.
  bool SkipScalar() {
    if (left() == 0) return false;
    const auto type = static_cast<uint8_t>(*at_);
    size_t size = 1;
    if (type >= kFixstrFirst && type <= kFixstrLast) {
      size += type - kFixstrFirst;
    } else if (type > kPositiveFixintLast && type < kNegativeFixintFirst) {
      switch (type) {
        case kFalse:
        case kTrue: break;
        case kUint8:
        case kInt8: size = 2; break;
        case kUint16:
        case kInt16: size = 3; break;
        case kUint32:
        case kInt32:
        case kFloat32: size = 5; break;
        case kUint64:
        case kInt64:
        case kFloat64: size = 9; break;
        case kStr8:
          if (left() < 2) return false;
          size = 2 + size_t{static_cast<uint8_t>(at_[1])};
          break;
        case kStr16:
          if (left() < 3) return false;
          size = 3 + size_t{LoadBigEndian<uint16_t>(at_ + 1)};
          break;
        default: return false;
      }
    }
    if (left() < size) return false;
    at_ += size;
    return true;
  }

  std::string_view rest() const { return {at_, left()}; }

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  template <typename T>
  bool TakeFixed(uint64_t* value) {
    if (left() < 1 + sizeof(T)) return false;
    *value = LoadBigEndian<T>(at_ + 1);
    at_ += 1 + sizeof(T);
    return true;
  }

  const char* at_;
  const char* end_;
};

// nil for a grant, else the word of the limit.
bool TakeRefusedBy(CommonReader* in, CommonReply* reply) {
  reply->refused_by = RefusedBy::kNone;
  if (in->Take("\xc0")) return true;
  std::string_view name;
  if (!in->TakeShortString(&name)) return false;
  reply->refused_by = RefusedByFromName(name);
  return true;
}

// The result of an acquire behind its status.
bool TakeAcquired(CommonReader* in, CommonReply* reply) {
  uint64_t ignored = 0;  // Fence, now_calls, level, hold_ms.
  if (!in->TakeUint(&reply->token_id) || !in->TakeUint(&ignored) || !in->TakeUint(&ignored) ||
      !in->TakeUint(&ignored) || !in->TakeUint(&ignored)) {
    return false;
  }
  return TakeRefusedBy(in, reply);
}

// The result of a request behind its status.
bool TakeRate(CommonReader* in, CommonReply* reply) {
  uint64_t ignored = 0;  // Remaining, or -1; wait_ms.
  if ((!in->Take("\xff") && !in->TakeUint(&ignored)) || !in->TakeUint(&ignored)) return false;
  return TakeRefusedBy(in, reply);
}

// Each literal is an array's head and a status; together they tell the method. Most frequent first.
bool TakeResult(CommonReader* in, CommonReply* reply) {
  // [6]: a release, kReleaseOk.
  if (in->Take("\x91\x06")) {
    reply->status = TokenStatus::kReleaseOk;
    return true;
  }
  // Seven elements: an acquire without terms, granted or refused.
  if (in->Take("\x97\x00")) {
    reply->status = TokenStatus::kOk;
    return TakeAcquired(in, reply);
  }
  if (in->Take("\x97\x01")) {
    reply->status = TokenStatus::kBlocked;
    return TakeAcquired(in, reply);
  }
  // Four elements: a request for calls a second.
  if (in->Take("\x94\x00")) {
    reply->status = TokenStatus::kOk;
    return TakeRate(in, reply);
  }
  // One element more: the value of the parameter whose limit refuses.
  if (in->Take("\x98\x01")) {
    reply->status = TokenStatus::kBlocked;
    return TakeAcquired(in, reply) && in->SkipScalar();
  }
  if (in->Take("\x95\x01")) {
    reply->status = TokenStatus::kBlocked;
    return TakeRate(in, reply) && in->SkipScalar();
  }
  if (!in->Take("\x94\x01")) return false;
  reply->status = TokenStatus::kBlocked;
  return TakeRate(in, reply);
}

}  // namespace

RefusedBy RefusedByFromName(std::string_view name) {
  for (int number = 1; number < kRefusedByCount; ++number) {
    const auto limit = static_cast<RefusedBy>(number);
    if (name == RefusedByName(limit)) return limit;
  }
  return RefusedBy::kOther;
}

bool TakeCommonReply(std::string_view* input, CommonReply* reply) {
  // A response without an error: [1, msgid, nil, result. *input moves only if all of it is taken.
  CommonReader in(*input);
  uint64_t msgid = 0;
  if (!in.Take("\x94\x01") || !in.TakeUint(&msgid) || msgid > UINT32_MAX || !in.Take("\xc0") ||
      !TakeResult(&in, reply)) {
    return false;
  }
  reply->msgid = static_cast<uint32_t>(msgid);
  *input = in.rest();
  return true;
}

}  // namespace nowcalls::wire
