#include "store/salvage/key_prefix.h"

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"

namespace nowcalls::store {

KeyPrefix PrefixOf(std::string_view key) {
  char bytes[sizeof(KeyPrefix)] = {};
  std::copy_n(key.data(), std::min(key.size(), sizeof(bytes)), bytes);
  return KeyPrefix{LoadBigEndian<uint64_t>(bytes)} << 64 | LoadBigEndian<uint64_t>(bytes + 8);
}

std::string KeyOf(KeyPrefix prefix) {
  char bytes[sizeof(prefix)];
  StoreBigEndian(bytes, static_cast<uint64_t>(prefix >> 64));
  StoreBigEndian(bytes + 8, static_cast<uint64_t>(prefix));
  return std::string(bytes, sizeof(bytes));
}

}  // namespace nowcalls::store
