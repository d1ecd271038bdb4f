// The first bytes of a key as a number, to search for the next place of a family that can be read.
//
// Thread: any; pure.
#ifndef NOWCALLS_STORE_SALVAGE_KEY_PREFIX_H_
#define NOWCALLS_STORE_SALVAGE_KEY_PREFIX_H_

#include <string>
#include <string_view>

namespace nowcalls::store {

// The first 16 bytes of a key, big-endian, with zeros behind a shorter one. Numbers have the order
// of keys. A token's key has no more bytes.
__extension__ using KeyPrefix = unsigned __int128;
inline constexpr KeyPrefix kKeyPrefixMax = ~KeyPrefix{0};

KeyPrefix PrefixOf(std::string_view key);
// The least key with this prefix.
std::string KeyOf(KeyPrefix prefix);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_KEY_PREFIX_H_
