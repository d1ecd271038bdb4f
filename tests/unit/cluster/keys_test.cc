// Names of keys: their order, and back to numbers.
#include "cluster/keys.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::cluster {
namespace {

TEST_CASE("keys lie under the prefix, however it is written") {
  for (const char* prefix : {"shop/tokens", "/shop/tokens", "//shop/tokens//"}) {
    const auto keys = Keys::Under(prefix);
    REQUIRE(keys.ok());
    CHECK(keys->prefix() == "/shop/tokens/");
    CHECK(keys->writer() == "/shop/tokens/writer");
    CHECK(keys->Slot(255) == "/shop/tokens/log/00000000000000ff");
    CHECK(keys->Member("a") == "/shop/tokens/members/a");
  }
}

TEST_CASE("a wrong prefix is told") {
  const auto problem = [](const std::string& prefix) {
    return Keys::Under(prefix).status().message();
  };
  CHECK(problem("/") == "the prefix of the cluster's keys is empty");
  CHECK(problem("a b") ==
        "the prefix of the cluster's keys has a character that is not visible ASCII");
  CHECK(problem(std::string(513, 'a')) ==
        "the prefix of the cluster's keys has more than 512 bytes");
}

TEST_CASE("slots sort as their numbers, within their range") {
  const Keys keys = *Keys::Under("p");
  uint64_t before = 0;
  for (const uint64_t number : {1ull, 9ull, 10ull, 255ull, 256ull, 1ull << 40, ~0ull}) {
    CHECK(keys.Slot(before) < keys.Slot(number));
    CHECK(keys.Slot(number) < keys.slots_end());
    CHECK(keys.SlotNumber(keys.Slot(number)) == number);
    before = number;
  }
  CHECK(keys.Member("z") < keys.members_end());
  CHECK(keys.members_end() < keys.writer());
}

TEST_CASE("other keys are no slots") {
  const Keys keys = *Keys::Under("p");
  for (const char* key : {"/p/writer", "/p/log/", "/p/log/1", "/p/log/00000000000000FF",
                          "/p/log/00000000000000fg", "/q/log/0000000000000001"}) {
    CHECK_MESSAGE(!keys.SlotNumber(key).has_value(), key);
  }
}

}  // namespace
}  // namespace nowcalls::cluster
