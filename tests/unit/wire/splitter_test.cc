#include "wire/splitter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/golden.h"
#include "unit/wire/pack.h"

namespace nowcalls::wire {
namespace {

using Outcome = MessageSplitter::Outcome;

// What a stream gives when it arrives in pieces that end at `cuts` and at its end.
struct Split {
  std::vector<size_t> sizes;  // Of the messages, in order.
  size_t left = 0;            // Bytes behind the last whole message.
  bool invalid = false;
  std::string error;

  bool operator==(const Split&) const = default;
};

Split Feed(const std::string& stream, std::vector<size_t> cuts) {
  cuts.push_back(stream.size());
  MessageSplitter splitter;
  Split split;
  size_t begin = 0;
  for (const size_t end : cuts) {
    // A copy of the right size, so that a sanitizer sees any look behind it.
    for (;;) {
      const std::vector<char> arrived(stream.begin() + static_cast<std::ptrdiff_t>(begin),
                                      stream.begin() + static_cast<std::ptrdiff_t>(end));
      size_t size = 0;
      const Outcome outcome = splitter.Next({arrived.data(), arrived.size()}, &size);
      if (outcome == Outcome::kInvalid) {
        split.invalid = true;
        split.error = splitter.error();
        return split;
      }
      if (outcome == Outcome::kIncomplete) break;
      split.sizes.push_back(size);
      begin += size;
    }
  }
  split.left = stream.size() - begin;
  return split;
}

Outcome FeedWhole(const std::string& stream) {
  MessageSplitter splitter;
  size_t size = 0;
  return splitter.Next(stream, &size);
}

// [0, 1, "ping", `params`]
std::string Request(const std::string& params) { return PackArray(0, 1, "ping", Raw{params}); }

std::string Nested(size_t levels) { return std::string(levels - 1, '\x91') + '\x90'; }

std::map<std::string, std::string> AllGolden() {
  std::map<std::string, std::string> all =
      testing::LoadGolden(testing::GoldenPath("wire_requests.hex"));
  for (auto& [name, bytes] : testing::LoadGolden(testing::GoldenPath("wire_replies.hex"))) {
    all["reply " + name] = bytes;
  }
  return all;
}

TEST_CASE("messages in a row are found one after the other") {
  const std::string ping = PackArray(0, 1, "ping", std::vector<int>());
  const std::string release = PackArray(2, "release", std::vector<int>{5});
  const Split split = Feed(ping + release + ping + "\x94", {});
  CHECK(split.sizes == std::vector<size_t>{ping.size(), release.size(), ping.size()});
  CHECK(split.left == 1);
}

TEST_CASE("every golden message is whole at its last byte and at none before") {
  for (const auto& vector : AllGolden()) {
    CAPTURE(vector.first);
    const std::string& bytes = vector.second;
    for (size_t size = 0; size < bytes.size(); ++size) {
      CHECK(FeedWhole(bytes.substr(0, size)) == Outcome::kIncomplete);
    }
    CHECK(Feed(bytes, {}).sizes == std::vector<size_t>{bytes.size()});
  }
}

TEST_CASE("how the bytes arrive changes nothing") {
  std::string stream;
  for (const auto& [name, bytes] : AllGolden()) stream += bytes;
  stream += Request(PackArray(std::string(300, 's'), std::vector<int>(70, 1000)));
  const Split whole = Feed(stream, {});
  CHECK(whole.left == 0);
  std::vector<size_t> every_byte;
  for (size_t cut = 1; cut < stream.size(); ++cut) {
    every_byte.push_back(cut);
    CHECK(Feed(stream, {cut}) == whole);
  }
  CHECK(Feed(stream, every_byte) == whole);
}

TEST_CASE("bytes that were looked at are not looked at again") {
  constexpr size_t kLongestHead = 5;  // It is looked at again while it is cut off.
  for (const auto& vector : AllGolden()) {
    CAPTURE(vector.first);
    const std::string& bytes = vector.second;
    MessageSplitter splitter;
    size_t size = 0;
    for (size_t arrived = 1; arrived < bytes.size(); ++arrived) {
      std::string spoilt = bytes.substr(0, arrived);
      if (arrived > kLongestHead)
        spoilt.replace(0, arrived - kLongestHead, arrived - kLongestHead, '\xc1');
      REQUIRE(splitter.Next(spoilt, &size) == Outcome::kIncomplete);
    }
    const std::string spoilt = std::string(bytes.size() - 1, '\xc1') + bytes.back();
    REQUIRE(splitter.Next(spoilt, &size) == Outcome::kMessage);
    CHECK(size == bytes.size());
  }
}

TEST_CASE("a refused stream is refused at its last byte, however it arrives") {
  for (const auto& vector : testing::LoadGolden(testing::GoldenPath("wire_refused.hex"))) {
    CAPTURE(vector.first);
    const std::string& bytes = vector.second;
    const Split whole = Feed(bytes, {});
    CHECK(whole.invalid);
    CHECK_FALSE(whole.error.empty());
    const std::string before = bytes.substr(0, bytes.size() - 1);
    CHECK(FeedWhole(before) == Outcome::kIncomplete);
    for (size_t cut = 1; cut < bytes.size(); ++cut) CHECK(Feed(bytes, {cut}) == whole);
  }
}

TEST_CASE("errors name the limit or the byte") {
  const auto error = [](const std::string& stream) { return Feed(stream, {}).error; };
  CHECK(error("\x84") ==
        "byte 0x84 begins no MessagePack-RPC message, which is an array of 3 or 4 (0x93 or 0x94)");
  CHECK(error(Bytes("94 dd ffffffff")) == "array of 4294967295 elements exceeds 1024");
  CHECK(error(Bytes("94 df 00000401")) == "map of 1025 pairs exceeds 1024");
  CHECK(error(Bytes("94 c6 ffffffff")) == "message exceeds 65536 bytes");
  CHECK(error(Bytes("94 c1")) == "byte 0xc1 begins no MessagePack value");
  CHECK(error(Bytes("94 d6")) == "extension type (byte 0xd6) is not allowed");
  CHECK(error(std::string(100'000, '\x93')) == "arrays and maps are nested more than 8 deep");
  CHECK(error(PackArray(0, 1, "ping", std::vector<int>())).empty());
}

TEST_CASE("a stream that was refused stays refused") {
  MessageSplitter splitter;
  size_t size = 0;
  CHECK(splitter.Next("\x84", &size) == Outcome::kInvalid);
  CHECK(splitter.Next(PackArray(0, 1, "ping", std::vector<int>()), &size) == Outcome::kInvalid);
}

TEST_CASE("every extension type is refused") {
  for (const int type : {0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8}) {
    CHECK(FeedWhole(std::string("\x93") + static_cast<char>(type)) == Outcome::kInvalid);
  }
}

TEST_CASE("a message has at most 8 levels") {
  CHECK(FeedWhole(Request(Nested(7))) == Outcome::kMessage);
  CHECK(FeedWhole(Request(Nested(8))) == Outcome::kInvalid);
  const std::string maps =
      "\x93\x02\xa1k" + std::string("\x91\x81\xa1k\x91\x81\xa1k\x91\x81\xa1k", 12);
  CHECK(FeedWhole(maps + '\x90') == Outcome::kMessage);
  CHECK(FeedWhole(maps + "\x91\x90") == Outcome::kInvalid);
}

TEST_CASE("an array has at most 1024 elements and a map at most 1024 pairs") {
  CHECK(FeedWhole(Request(PackArray(std::vector<int>(1024, 1)))) == Outcome::kMessage);
  CHECK(FeedWhole(Request(PackArray(std::vector<int>(1025, 1)))) == Outcome::kInvalid);
  std::map<int, int> map;
  while (map.size() < 1024) map.emplace(map.size(), 1);
  CHECK(FeedWhole(Request(PackArray(map))) == Outcome::kMessage);
  map.emplace(1024, 1);
  CHECK(FeedWhole(Request(PackArray(map))) == Outcome::kInvalid);
}

TEST_CASE("a message has at most 64 KiB, whatever its last value is") {
  const size_t around = Request(PackArray(std::string(60'000, 's'))).size() - 60'000;
  const std::string longest(kMessageBytesMax - around, 's');
  CHECK(Request(PackArray(longest)).size() == kMessageBytesMax);
  CHECK(FeedWhole(Request(PackArray(longest))) == Outcome::kMessage);
  CHECK(FeedWhole(Request(PackArray(longest + "s"))) == Outcome::kInvalid);
  // The head of the str is enough to refuse it.
  CHECK(FeedWhole(Request(PackArray(longest + "s")).substr(0, around)) == Outcome::kInvalid);
  // Values behind a str that leaves them no room: a byte too many of each kind.
  for (const char* last :
       {"c0", "cc05", "cb0000000000000000", "a0", "d900", "90", "dc0000", "dd00000000", "80"}) {
    CAPTURE(last);
    const std::string value = Bytes(last);
    const std::string fitting = longest.substr(0, longest.size() - value.size());
    CHECK(FeedWhole(Request(PackArray(fitting, Raw{value}))) == Outcome::kMessage);
    CHECK(FeedWhole(Request(PackArray(fitting + "s", Raw{value}))) == Outcome::kInvalid);
  }
}

TEST_CASE("a full message that still wants values is refused, not awaited") {
  const std::string params = PackArray(std::string(kMessageBytesMax - 12, 's'), Nil());
  const std::string request = Request(params);
  const std::string full = request.substr(0, kMessageBytesMax);
  CHECK(request.size() > kMessageBytesMax);
  CHECK(FeedWhole(full) == Outcome::kInvalid);
}

TEST_CASE("bin values are taken and may be as long as the message") {
  CHECK(FeedWhole(Request(PackArray(std::vector<char>(40'000, 'b')))) == Outcome::kMessage);
}

TEST_CASE("a client may allow longer answers") {
  const std::string answer = Request(PackArray(std::string(100'000, 's')));
  MessageSplitter splitter(kReplyBytesMax);
  size_t size = 0;
  CHECK(splitter.Next(answer, &size) == Outcome::kMessage);
  CHECK(size == answer.size());
  MessageSplitter wide(kReplyBytesMax, 5000);
  CHECK(wide.Next(Request(PackArray(std::vector<int>(5000, 1))), &size) == Outcome::kMessage);
}

TEST_CASE("it is known whether a message has begun") {
  MessageSplitter splitter;
  size_t size = 0;
  CHECK_FALSE(splitter.in_message());
  CHECK(splitter.Next("", &size) == Outcome::kIncomplete);
  CHECK_FALSE(splitter.in_message());
  CHECK(splitter.Next("\x93", &size) == Outcome::kIncomplete);
  CHECK(splitter.in_message());
  CHECK(splitter.Next("\x93\x02\xa1k\x90", &size) == Outcome::kMessage);
  CHECK(size == 5);
  CHECK_FALSE(splitter.in_message());
}

}  // namespace
}  // namespace nowcalls::wire
