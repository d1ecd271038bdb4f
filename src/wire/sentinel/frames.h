// Sentinel's frames, the server's half (src/wire/SENTINEL.md). The client's half: client_frames.h.
//
// Thread: any; a splitter: one at a time. Allocates nothing.
#ifndef NOWCALLS_WIRE_SENTINEL_FRAMES_H_
#define NOWCALLS_WIRE_SENTINEL_FRAMES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "nowcalls/param.h"
#include "nowcalls/types.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire::sentinel {

inline constexpr size_t kLengthBytes = 2;
inline constexpr size_t kPayloadBytesMax = 1022;
inline constexpr size_t kRequestHeadBytes = 5;
inline constexpr size_t kResponseHeadBytes = 6;
inline constexpr uint8_t kFirstByteMax = kPayloadBytesMax >> 8;  // High byte of a length.

enum class RequestType : int8_t {
  kPing = 0,
  kFlow = 1,
  kParamFlow = 2,
  kAcquire = 3,
  kRelease = 4,
  kKeep = 5,
};
inline constexpr int kRequestTypeCount = 6;

class FrameSplitter {
 public:
  enum class Outcome : uint8_t {
    kFrame,      // *size bytes are one frame; its payload may be empty.
    kOversized,  // A frame of more than kPayloadBytesMax begins, and its head is there. *size bytes
                 // are to be dropped.
    kSkipped,    // *size bytes are the rest of an oversized frame, or a part of the rest.
    kIncomplete,  // Of the frame more is to come. Next is called again with all of it.
  };

  // `input` begins where the last frame or part ended. REQUIRES: not empty.
  Outcome Next(std::string_view input, size_t* size) {
    if (to_skip_ > 0) return Skip(input, Outcome::kSkipped, size);
    if (input.size() < kLengthBytes) return Outcome::kIncomplete;
    const size_t whole = kLengthBytes + LoadBigEndian<uint16_t>(input.data());
    if (whole > kLengthBytes + kPayloadBytesMax) {
      if (input.size() < kLengthBytes + kRequestHeadBytes) return Outcome::kIncomplete;
      to_skip_ = whole;
      return Skip(input, Outcome::kOversized, size);
    }
    if (input.size() < whole) return Outcome::kIncomplete;
    *size = whole;
    return Outcome::kFrame;
  }

  bool skipping() const { return to_skip_ > 0; }  // The rest of an oversized frame is to come.

 private:
  Outcome Skip(std::string_view input, Outcome outcome, size_t* size) {
    *size = std::min(input.size(), to_skip_);
    to_skip_ -= *size;
    return outcome;
  }

  size_t to_skip_ = 0;
};

// --- Requests. ---

struct Request {
  uint32_t xid = 0;
  int8_t type = 0;  // Any number; RequestType has those that are known.
  std::string_view data;
};

// False: the payload is too short; *request has the xid if it is there, and zeros.
inline bool DecodeRequest(std::string_view payload, Request* request) {
  if (payload.size() < kRequestHeadBytes) {
    request->xid = payload.size() < 4 ? 0 : LoadBigEndian<uint32_t>(payload.data());
    request->type = 0;
    request->data = {};
    return false;
  }
  request->xid = LoadBigEndian<uint32_t>(payload.data());
  request->type = static_cast<int8_t>(payload[4]);
  request->data = payload.substr(kRequestHeadBytes);
  return true;
}

struct CallParams {  // Values may be out of range: the core answers that.
  int64_t flow_id = 0;
  int32_t count = 0;
  bool prioritized = false;
};

// Released clients may leave `prioritized` out. False: too short.
inline bool DecodeCall(std::string_view data, CallParams* params) {
  constexpr size_t kLeastBytes = 12;
  if (data.size() < kLeastBytes) return false;
  params->flow_id = LoadBigEndian<int64_t>(data.data());
  params->count = LoadBigEndian<int32_t>(data.data() + 8);
  params->prioritized = data.size() > kLeastBytes && data[kLeastBytes] != 0;
  return true;
}

// kRelease, kKeep.
inline bool DecodeToken(std::string_view data, uint64_t* token_id) {
  if (data.size() < sizeof(*token_id)) return false;
  *token_id = LoadBigEndian<uint64_t>(data.data());
  return true;
}

// *name_space is a part of `data`, maybe empty. False: cut off.
bool DecodePing(std::string_view data, std::string_view* name_space);

// Of a full frame: the least take 2 bytes.
inline constexpr size_t kParamsMax = (kPayloadBytesMax - kRequestHeadBytes - 16) / 2;
using ParamRoom = std::array<Param, kParamsMax>;

struct ParamCallParams {
  int64_t flow_id = 0;
  int32_t count = 0;
  std::span<const Param> values;  // Within `room`; their bytes are in the data.
};

// False: cut off, an unknown type, a string not in UTF-8, or a count or length that is negative or
// beyond the data.
bool DecodeParamCall(std::string_view data, ParamRoom* room, ParamCallParams* params);

// --- Responses. Each appends one whole frame. ---

namespace internal {

inline char* StoreHead(char* bytes, size_t data_bytes, uint32_t xid, int8_t type,
                       TokenStatus status) {
  bytes = StoreBigEndian(bytes, static_cast<uint16_t>(kResponseHeadBytes + data_bytes));
  bytes = StoreBigEndian(bytes, xid);
  *bytes++ = static_cast<char>(type);
  *bytes++ = static_cast<char>(status);
  return bytes;
}

}  // namespace internal

// kFlow, kParamFlow. Released clients want exactly these 8 bytes of data.
inline void EncodeRate(uint32_t xid, RequestType type, TokenStatus status, int32_t remaining,
                       int32_t wait_ms, OutputBuffer* out) {
  constexpr size_t kDataBytes = 8;
  char bytes[kLengthBytes + kResponseHeadBytes + kDataBytes];
  char* data = internal::StoreHead(bytes, kDataBytes, xid, static_cast<int8_t>(type), status);
  StoreBigEndian(StoreBigEndian(data, remaining), wait_ms);
  out->write(bytes, sizeof(bytes));
}

// `token_id`: 0 unless the status is kOk.
inline void EncodeAcquire(uint32_t xid, TokenStatus status, uint64_t token_id, OutputBuffer* out) {
  constexpr size_t kDataBytes = 8;
  char bytes[kLengthBytes + kResponseHeadBytes + kDataBytes];
  StoreBigEndian(internal::StoreHead(bytes, kDataBytes, xid,
                                     static_cast<int8_t>(RequestType::kAcquire), status),
                 token_id);
  out->write(bytes, sizeof(bytes));
}

// kRelease, kKeep, and every answer without data.
inline void EncodeStatus(uint32_t xid, int8_t type, TokenStatus status, OutputBuffer* out) {
  char bytes[kLengthBytes + kResponseHeadBytes];
  internal::StoreHead(bytes, 0, xid, type, status);
  out->write(bytes, sizeof(bytes));
}

// connectedCount is one byte, and at most this (SENTINEL.md).
inline constexpr uint32_t kConnectedCountMax = 127;
void EncodePing(uint32_t xid, uint32_t connected_count, OutputBuffer* out);

// Any type; zeros where an answer of the type has data.
void EncodeRefusal(uint32_t xid, int8_t type, TokenStatus status, OutputBuffer* out);

}  // namespace nowcalls::wire::sentinel

#endif  // NOWCALLS_WIRE_SENTINEL_FRAMES_H_
