#include "store/key_cuts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace nowcalls::store {
namespace {

using Cuts = std::vector<KeyPrefix>;

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

TEST_CASE("a file is cut where its rows would be if they lay evenly") {
  CHECK((EvenCuts({{100, 199, 1'000}}, 0, 4) == Cuts{125, 150, 175}));
  CHECK((EvenCuts({{100 * kHigh, 200 * kHigh - 1, 5}}, 0, 2) == Cuts{150 * kHigh}));
}

TEST_CASE("files that overlap, touch, or lie apart are one stretch of rows") {
  // Half of all is in the first ten numbers.
  CHECK((EvenCuts({{0, 99, 100}, {0, 9, 80}}, 0, 2) == Cuts{10}));
  CHECK((EvenCuts({{0, 9, 50}, {10, 19, 150}}, 0, 2) == Cuts{13}));
  CHECK((EvenCuts({{1'000, 1'009, 40}, {0, 9, 40}}, 0, 4) == Cuts{5, 1'000, 1'005}));
}

TEST_CASE("what lies before the place to start from does not count") {
  CHECK((EvenCuts({{0, 199, 200}}, 100, 2) == Cuts{150}));
  CHECK((EvenCuts({{0, 99, 1'000'000}, {100, 199, 10}}, 100, 2) == Cuts{150}));
  CHECK(EvenCuts({{0, 99, 100}}, 100, 4).empty());
}

TEST_CASE("nothing is cut that has no parts") {
  CHECK(EvenCuts({}, 0, 8).empty());
  CHECK(EvenCuts({{0, 99, 100}}, 0, 1).empty());
  CHECK(EvenCuts({{0, 99, 100}}, 0, 0).empty());
  CHECK(EvenCuts({{0, 99, 0}}, 0, 8).empty());
  CHECK(EvenCuts({{7, 7, 100}}, 7, 8).empty());
  CHECK(EvenCuts({{9, 7, 100}}, 0, 8).empty());  // Ends before it begins.
}

TEST_CASE("cuts ascend and lie behind the start, whatever the files") {
  const std::vector<std::vector<FileRange>> ledgers = {
      {{0, kKeyPrefixMax, UINT64_MAX}},
      {{kKeyPrefixMax, kKeyPrefixMax, 1}, {0, 0, 1}},
      {{kKeyPrefixMax - 3, kKeyPrefixMax, 1'000}},
      {{5, 5, 10}, {5, 6, 10}, {6, 6, 10}},
      {{1, 2, 1}, {kHigh, kHigh + 1, UINT64_MAX}, {3 * kHigh, kKeyPrefixMax, 7}}};
  for (const std::vector<FileRange>& files : ledgers) {
    for (const KeyPrefix from : {KeyPrefix{0}, KeyPrefix{5}, kHigh, kKeyPrefixMax}) {
      for (const size_t parts : {2, 3, 64}) {
        const Cuts cuts = EvenCuts(files, from, parts);
        CHECK(cuts.size() < parts);
        CHECK((cuts.empty() || cuts.front() > from));
        CHECK(std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end());
      }
    }
  }
}

}  // namespace
}  // namespace nowcalls::store
