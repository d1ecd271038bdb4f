// RESP2, the language of Redis.
//
// Thread: any. Reading allocates nothing; views point into the bytes read.
#ifndef NOWCALLS_BENCH_RESP_H_
#define NOWCALLS_BENCH_RESP_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace nowcalls::bench {

// A command: an array of bulk strings.
void AppendRespArray(size_t elements, std::string* out);
void AppendRespBulk(std::string_view text, std::string* out);
std::string RespCommand(std::initializer_list<std::string_view> words);

enum class RespKind : uint8_t { kSimple, kError, kInteger, kBulk, kNull, kArray };

struct RespValue {
  RespKind kind = RespKind::kNull;
  int64_t integer = 0;    // Of an integer; of an array its number of elements.
  std::string_view text;  // Of a simple string, an error or a bulk string.
};

enum class RespOutcome : uint8_t { kValue, kIncomplete, kInvalid };

inline constexpr int64_t kRespBulkBytesMax = 64 * 1024 * 1024;
inline constexpr int64_t kRespElementsMax = 1024 * 1024;  // Of an array.

// Takes one value off the front of *input; of an array the head alone. *input moves with kValue
// only. kInvalid: no RESP2.
RespOutcome TakeResp(std::string_view* input, RespValue* value);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_RESP_H_
