// Where keys lie: their prefixes as numbers, and where to cut a family into parts of one size.
//
// Thread: any.
#ifndef NOWCALLS_STORE_KEY_CUTS_H_
#define NOWCALLS_STORE_KEY_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::store {

// What a key begins with, as a number, in the order of keys; of tokens that is all of it.
__extension__ using KeyPrefix = unsigned __int128;
inline constexpr KeyPrefix kKeyPrefixMax = ~KeyPrefix{0};

KeyPrefix PrefixOf(std::string_view key);
// The least key with this prefix.
std::string KeyOf(KeyPrefix prefix);

// The rows of one file: from the first to the last, both in it.
struct FileRange {
  KeyPrefix first = 0;
  KeyPrefix last = 0;
  uint64_t bytes = 0;
};

// At most `parts` - 1 places, ascending and behind `from`, which cut what lies from there on into
// parts of about the same bytes, as far as the rows of a file lie evenly between its ends.
std::vector<KeyPrefix> EvenCuts(const std::vector<FileRange>& files, KeyPrefix from, size_t parts);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_KEY_CUTS_H_
