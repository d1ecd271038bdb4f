// Messages for the tests, packed by msgpack-c and thus not by the code under test.
#ifndef NOWCALLS_UNIT_WIRE_PACK_H_
#define NOWCALLS_UNIT_WIRE_PACK_H_

#include <map>
#include <msgpack.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/hex.h"

namespace nowcalls::wire {

using Nil = msgpack::type::nil_t;

// Bytes that are MessagePack already.
struct Raw {
  std::string bytes;
};

inline void PackOne(msgpack::packer<msgpack::sbuffer>* packer, msgpack::sbuffer* out,
                    const Raw& raw) {
  static_cast<void>(packer);
  out->write(raw.bytes.data(), raw.bytes.size());
}
template <typename T>
void PackOne(msgpack::packer<msgpack::sbuffer>* packer, msgpack::sbuffer* out, const T& value) {
  static_cast<void>(out);
  packer->pack(value);
}

// An array of the values.
template <typename... T>
std::string PackArray(const T&... values) {
  msgpack::sbuffer out;
  msgpack::packer<msgpack::sbuffer> packer(out);
  packer.pack_array(sizeof...(values));
  (PackOne(&packer, &out, values), ...);
  return {out.data(), out.size()};
}

// A map of one pair.
template <typename T>
Raw PackMap(std::string_view key, const T& value) {
  msgpack::sbuffer out;
  msgpack::packer<msgpack::sbuffer> packer(out);
  packer.pack_map(1);
  packer.pack(key);
  PackOne(&packer, &out, value);
  return {{out.data(), out.size()}};
}

inline Raw EmptyMap() { return {std::string("\x80")}; }

// The bytes that hex digits with free spaces spell; empty when they are none.
inline std::string Bytes(std::string_view hex) {
  std::string digits;
  for (const char c : hex) {
    if (c != ' ') digits += c;
  }
  Result<std::string> bytes = FromHex(digits);
  return bytes.ok() ? *std::move(bytes) : std::string();
}

}  // namespace nowcalls::wire

#endif  // NOWCALLS_UNIT_WIRE_PACK_H_
