// Sentinel's frames as released clients send them, for the benchmark and tests.
//
// Thread: any. Encoders append one whole frame.
#ifndef NOWCALLS_WIRE_SENTINEL_CLIENT_FRAMES_H_
#define NOWCALLS_WIRE_SENTINEL_CLIENT_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "nowcalls/param.h"
#include "nowcalls/types.h"
#include "wire/output_buffer.h"
#include "wire/sentinel/frames.h"

namespace nowcalls::wire::sentinel {

// REQUIRES: the frame has room, here and below.
void EncodePingRequest(uint32_t xid, std::string_view name_space, OutputBuffer* out);

// kFlow, kAcquire: 13 bytes of data.
void EncodeCallRequest(uint32_t xid, RequestType type, const CallParams& params, OutputBuffer* out);
// Without `prioritized`: 12 bytes.
void EncodeShortCallRequest(uint32_t xid, RequestType type, int64_t flow_id, int32_t count,
                            OutputBuffer* out);
void EncodeParamCallRequest(uint32_t xid, int64_t flow_id, int32_t count,
                            std::span<const Param> values, OutputBuffer* out);
// kRelease, kKeep.
void EncodeTokenRequest(uint32_t xid, RequestType type, uint64_t token_id, OutputBuffer* out);

struct Response {
  uint32_t xid = 0;
  int8_t type = 0;
  TokenStatus status = TokenStatus::kFail;
  std::string_view data;

  // kPing: connectedCount, one byte; kFlow, kParamFlow: the remaining calls. 0 without data.
  int32_t count() const {
    if (data.size() == 1) return static_cast<int8_t>(data[0]);
    return data.size() < 4 ? 0 : LoadBigEndian<int32_t>(data.data());
  }
  int32_t wait_ms() const { return data.size() < 8 ? 0 : LoadBigEndian<int32_t>(data.data() + 4); }
  uint64_t token_id() const { return data.size() < 8 ? 0 : LoadBigEndian<uint64_t>(data.data()); }
};

enum class Answer : uint8_t { kWhole, kIncomplete, kMalformed };

// Takes one whole response off the front of *input.
inline Answer TakeResponse(std::string_view* input, Response* response) {
  if (input->size() < kLengthBytes) return Answer::kIncomplete;
  const size_t size = LoadBigEndian<uint16_t>(input->data());
  if (size < kResponseHeadBytes || size > kPayloadBytesMax) return Answer::kMalformed;
  if (input->size() < kLengthBytes + size) return Answer::kIncomplete;
  const char* const payload = input->data() + kLengthBytes;
  response->xid = LoadBigEndian<uint32_t>(payload);
  response->type = static_cast<int8_t>(payload[4]);
  response->status = static_cast<TokenStatus>(payload[5]);
  response->data = {payload + kResponseHeadBytes, size - kResponseHeadBytes};
  input->remove_prefix(kLengthBytes + size);
  return Answer::kWhole;
}

}  // namespace nowcalls::wire::sentinel

#endif  // NOWCALLS_WIRE_SENTINEL_CLIENT_FRAMES_H_
