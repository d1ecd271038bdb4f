// Beginnings of messages, packed by msgpack-c.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_PACKING_H_
#define NOWCALLS_WIRE_PACKING_H_

#include <cstddef>
#include <cstdint>
#include <msgpack/pack.hpp>
#include <string_view>

#include "wire/format.h"
#include "wire/messages.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

using Packer = msgpack::packer<OutputBuffer>;

inline void PackString(std::string_view text, Packer* packer) {
  const auto size = static_cast<uint32_t>(text.size());
  packer->pack_str(size);
  packer->pack_str_body(text.data(), size);
}

// [1, msgid, nil, and the result follows.
inline void BeginResult(uint32_t msgid, Packer* packer) {
  packer->pack_array(4);
  packer->pack_int64(kResponseType);
  packer->pack_uint32(msgid);
  packer->pack_nil();
}

// [1, msgid, nil, [[ and `rows` rows follow, then PackCursor.
inline void BeginPage(uint32_t msgid, size_t rows, Packer* packer) {
  BeginResult(msgid, packer);
  packer->pack_array(2);
  packer->pack_array(static_cast<uint32_t>(rows));
}

inline void PackCursor(uint64_t next_cursor, Packer* packer) {
  if (next_cursor == 0) {
    packer->pack_nil();
  } else {
    packer->pack_uint64(next_cursor);
  }
}

// [0, msgid, METHOD, [ and `params` parameters follow.
inline void BeginRequest(uint32_t msgid, Method method, uint32_t params, Packer* packer) {
  packer->pack_array(4);
  packer->pack_int64(kRequestType);
  packer->pack_uint32(msgid);
  PackString(MethodName(method), packer);
  packer->pack_array(params);
}

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_PACKING_H_
