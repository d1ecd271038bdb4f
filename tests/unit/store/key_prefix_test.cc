#include "store/salvage/key_prefix.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::store {
namespace {

constexpr KeyPrefix kHigh = KeyPrefix{1} << 64;

TEST_CASE("a prefix is the number that the key begins with, in the order of keys") {
  CHECK((PrefixOf("") == 0));
  CHECK((PrefixOf(std::string(15, '\0') + '\1') == 1));
  CHECK((PrefixOf(std::string(7, '\0') + '\1') == kHigh));
  CHECK((PrefixOf(std::string(20, '\xff')) == kKeyPrefixMax));
  const std::string key = "0123456789abcdef";
  CHECK(KeyOf(PrefixOf(key)) == key);
  CHECK((PrefixOf("key") < PrefixOf("key1")));
}

}  // namespace
}  // namespace nowcalls::store
