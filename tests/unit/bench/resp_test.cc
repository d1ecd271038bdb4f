#include "bench/resp.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::bench {
namespace {

TEST_CASE("a Redis command is an array of bulk strings") {
  CHECK(RespCommand({"PING"}) == "*1\r\n$4\r\nPING\r\n");
  CHECK(RespCommand({"ZREM", "a key", ""}) == "*3\r\n$4\r\nZREM\r\n$5\r\na key\r\n$0\r\n\r\n");
}

RespValue TakeWhole(std::string_view bytes) {
  RespValue value;
  std::string_view input = bytes;
  REQUIRE(TakeResp(&input, &value) == RespOutcome::kValue);
  CHECK(input.empty());
  return value;
}

TEST_CASE("every kind of Redis reply is read") {
  CHECK(TakeWhole("+PONG\r\n").kind == RespKind::kSimple);
  CHECK(TakeWhole("+PONG\r\n").text == "PONG");
  CHECK(TakeWhole("-OOM no memory\r\n").kind == RespKind::kError);
  CHECK(TakeWhole("-OOM no memory\r\n").text == "OOM no memory");
  CHECK(TakeWhole(":-42\r\n").kind == RespKind::kInteger);
  CHECK(TakeWhole(":-42\r\n").integer == -42);
  CHECK(TakeWhole(std::string_view("$6\r\na\r\nb\0c\r\n", 12)).text ==
        std::string_view("a\r\nb\0c", 6));
  CHECK(TakeWhole("$0\r\n\r\n").text.empty());
  CHECK(TakeWhole("$-1\r\n").kind == RespKind::kNull);
  CHECK(TakeWhole("*-1\r\n").kind == RespKind::kNull);
  CHECK(TakeWhole("*3\r\n").kind == RespKind::kArray);
  CHECK(TakeWhole("*3\r\n").integer == 3);
}

TEST_CASE("a Redis reply that is cut off anywhere is incomplete and takes nothing") {
  for (const std::string_view whole : {"+OK\r\n", ":17\r\n", "$3\r\nabc\r\n", "-ERR x\r\n"}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(whole);
      CAPTURE(size);
      std::string_view input = whole.substr(0, size);
      RespValue value;
      CHECK(TakeResp(&input, &value) == RespOutcome::kIncomplete);
      CHECK(input.size() == size);
    }
  }
}

TEST_CASE("Redis replies are taken one after the other") {
  std::string_view input = ":1\r\n$2\r\nhi\r\n:3";
  RespValue value;
  CHECK(TakeResp(&input, &value) == RespOutcome::kValue);
  CHECK(value.integer == 1);
  CHECK(TakeResp(&input, &value) == RespOutcome::kValue);
  CHECK(value.text == "hi");
  CHECK(TakeResp(&input, &value) == RespOutcome::kIncomplete);
  CHECK(input == ":3");
}

TEST_CASE("what is no Redis reply is refused") {
  for (const std::string_view bytes :
       {"HTTP/1.1 400\r\n", ":1x\r\n", ":\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n",
        "*9223372036854775807\r\n", "$1\r\nabc", "$99999999999\r\n", "\x94\x01\r\n"}) {
    CAPTURE(bytes);
    std::string_view input = bytes;
    RespValue value;
    CHECK(TakeResp(&input, &value) == RespOutcome::kInvalid);
  }
  const std::string endless(100'000, '+');
  std::string_view input = endless;
  RespValue value;
  CHECK(TakeResp(&input, &value) == RespOutcome::kInvalid);
}

}  // namespace
}  // namespace nowcalls::bench
