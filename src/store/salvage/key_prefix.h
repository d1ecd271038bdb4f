// A key's first bytes as a number, for searches.
//
// Thread: any; pure.
#ifndef NOWCALLS_STORE_SALVAGE_KEY_PREFIX_H_
#define NOWCALLS_STORE_SALVAGE_KEY_PREFIX_H_

#include <string>
#include <string_view>

namespace nowcalls::store {

// First 16 bytes, big-endian, padded with zeros; ordered as keys. Holds a token's whole key.
__extension__ using KeyPrefix = unsigned __int128;
inline constexpr KeyPrefix kKeyPrefixMax = ~KeyPrefix{0};

KeyPrefix PrefixOf(std::string_view key);
// The least key with this prefix.
std::string KeyOf(KeyPrefix prefix);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_KEY_PREFIX_H_
