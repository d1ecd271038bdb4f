#include "bench/redis_dialect.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

namespace nowcalls::bench {
namespace {

constexpr uint64_t kFirstToken = 0xab;

std::shared_ptr<RedisDialect::Setup> TwoFlows() {
  return std::make_shared<RedisDialect::Setup>(std::vector<Flow>{{1, 10, 5000}, {2, 7, 60'000}},
                                               "ns", "c0ffee", kFirstToken);
}

Answer TakeOne(RedisDialect* dialect, std::string_view bytes) {
  Answer answer;
  std::string_view input = bytes;
  REQUIRE(dialect->Take(&input, &answer) == Dialect::Outcome::kAnswer);
  CHECK(input.empty());
  return answer;
}

TEST_CASE("with replicas an answer counts when its WAIT is answered") {
  const auto setup = std::make_shared<RedisDialect::Setup>(
      std::vector<Flow>{{1, 10, 5000}}, "bench", "sha", 0xabc, /*replica_count=*/2);
  RedisDialect dialect(setup, 4);
  wire::OutputBuffer out;
  dialect.Greet(&out);
  CHECK(TakeOne(&dialect, "+PONG\r\n").kind == AnswerKind::kGreeted);
  dialect.Acquire(0, 0, 1, &out);
  CHECK(std::string_view(out.data(), out.size())
            .ends_with("*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$1\r\n0\r\n"));
  std::string_view half = ":1\r\n";
  Answer answer;
  CHECK(dialect.Take(&half, &answer) == Dialect::Outcome::kIncomplete);
  CHECK(half == ":1\r\n");
  CHECK(TakeOne(&dialect, ":1\r\n:2\r\n").kind == AnswerKind::kGranted);
  dialect.Release(0, 0, 7, &out);
  CHECK(TakeOne(&dialect, ":1\r\n:1\r\n").error_name == "NOREPLICAS:");
}

TEST_CASE("Redis is asked for a token with its level, the time, its deadline and its name") {
  RedisDialect dialect(TwoFlows(), 4);
  wire::OutputBuffer out;
  dialect.Acquire(3, 1, 1'700'000'000'123, &out);
  CHECK(out.view() ==
        "*8\r\n$7\r\nEVALSHA\r\n$6\r\nc0ffee\r\n$1\r\n1\r\n$9\r\nns:flow:2\r\n$1\r\n7\r\n"
        "$13\r\n1700000000123\r\n$13\r\n1700000060123\r\n$16\r\n00000000000000ab\r\n");
  out.Clear();
  dialect.Acquire(0, 0, 1'700'000'000'124, &out);
  CHECK(out.view() ==
        "*8\r\n$7\r\nEVALSHA\r\n$6\r\nc0ffee\r\n$1\r\n1\r\n$9\r\nns:flow:1\r\n$2\r\n10\r\n"
        "$13\r\n1700000000124\r\n$13\r\n1700000005124\r\n$16\r\n00000000000000ac\r\n");
}

TEST_CASE("a request to Redis has the time of its own millisecond, whatever it had before") {
  RedisDialect dialect(TwoFlows(), 4);
  wire::OutputBuffer out;
  for (const int64_t ms : {1'700'000'000'123, 1'700'000'000'123, 1'700'000'000'999}) {
    out.Clear();
    dialect.Acquire(0, 0, ms, &out);
    CHECK(out.view().find("\r\n" + std::to_string(ms) + "\r\n") != std::string_view::npos);
    CHECK(out.view().find("\r\n" + std::to_string(ms + 5000) + "\r\n") != std::string_view::npos);
  }
}

TEST_CASE("Redis is told a token in sixteen hexadecimal digits") {
  RedisDialect dialect(TwoFlows(), 4);
  for (const auto& [token, digits] :
       {std::pair<uint64_t, std::string>{0x0123456789abcdef, "0123456789abcdef"},
        {0xfedcba9876543210, "fedcba9876543210"},
        {0, "0000000000000000"},
        {UINT64_MAX, "ffffffffffffffff"}}) {
    wire::OutputBuffer out;
    dialect.Release(0, 0, token, &out);
    CHECK(out.view() == "*3\r\n$4\r\nZREM\r\n$9\r\nns:flow:1\r\n$16\r\n" + digits + "\r\n");
    TakeOne(&dialect, ":1\r\n");
  }
}

TEST_CASE("Redis is asked to release the token that it granted") {
  RedisDialect dialect(TwoFlows(), 4);
  wire::OutputBuffer out;
  dialect.Acquire(3, 1, 1'700'000'000'123, &out);
  const Answer granted = TakeOne(&dialect, ":1\r\n");
  CHECK(granted.kind == AnswerKind::kGranted);
  CHECK(granted.lane == 3);
  CHECK(granted.token == kFirstToken);
  out.Clear();
  dialect.Release(3, 1, granted.token, &out);
  CHECK(out.view() == "*3\r\n$4\r\nZREM\r\n$9\r\nns:flow:2\r\n$16\r\n00000000000000ab\r\n");
  CHECK(TakeOne(&dialect, ":1\r\n").kind == AnswerKind::kReleased);
}

TEST_CASE("Redis' answers belong to the requests in the order in which they were asked") {
  RedisDialect dialect(TwoFlows(), 3);
  wire::OutputBuffer out;
  dialect.Greet(&out);
  CHECK(out.view() == "*1\r\n$4\r\nPING\r\n");
  CHECK(TakeOne(&dialect, "+PONG\r\n").kind == AnswerKind::kGreeted);
  for (uint32_t turn = 0; turn < 10; ++turn) {  // More than the ring is long.
    dialect.Acquire(2, 0, 1, &out);
    dialect.Acquire(0, 0, 1, &out);
    dialect.Acquire(1, 0, 1, &out);
    std::string_view input = ":1\r\n:0\r\n:1\r\n";
    for (const uint32_t lane : {2U, 0U, 1U}) {
      Answer answer;
      REQUIRE(dialect.Take(&input, &answer) == Dialect::Outcome::kAnswer);
      CHECK(answer.lane == lane);
      CHECK(answer.kind == (lane == 0 ? AnswerKind::kRefused : AnswerKind::kGranted));
      CHECK(answer.refused_by == (lane == 0 ? RefusedBy::kLevel : RefusedBy::kNone));
    }
  }
}

TEST_CASE("an answer of Redis that is cut off is taken when the rest of it is there") {
  RedisDialect dialect(TwoFlows(), 1);
  wire::OutputBuffer out;
  dialect.Acquire(0, 0, 1, &out);
  Answer answer;
  std::string_view part = ":1\r";
  CHECK(dialect.Take(&part, &answer) == Dialect::Outcome::kIncomplete);
  CHECK(part == ":1\r");
  CHECK(TakeOne(&dialect, ":1\r\n").kind == AnswerKind::kGranted);
}

TEST_CASE("errors of Redis are named by their first word") {
  RedisDialect dialect(TwoFlows(), 2);
  wire::OutputBuffer out;
  dialect.Acquire(1, 0, 1, &out);
  const Answer failed = TakeOne(&dialect, "-NOSCRIPT No matching script.\r\n");
  CHECK(failed.kind == AnswerKind::kError);
  CHECK(failed.lane == 1);
  CHECK(failed.error_name == "NOSCRIPT");
  CHECK(failed.error_text == "NOSCRIPT No matching script.");
  dialect.Release(1, 0, 7, &out);
  CHECK(TakeOne(&dialect, ":0\r\n").error_name == "ALREADY_RELEASE");
}

TEST_CASE("what Redis says unasked or in another type ends the connection") {
  RedisDialect dialect(TwoFlows(), 1);
  Answer answer;
  std::string_view unasked = ":1\r\n";
  CHECK(dialect.Take(&unasked, &answer) == Dialect::Outcome::kInvalid);
  CHECK_FALSE(dialect.error().empty());
  wire::OutputBuffer out;
  dialect.Acquire(0, 0, 1, &out);
  std::string_view other_type = "+OK\r\n";
  CHECK(dialect.Take(&other_type, &answer) == Dialect::Outcome::kInvalid);
  std::string_view garbage = "garbage\r\n";
  CHECK(dialect.Take(&garbage, &answer) == Dialect::Outcome::kInvalid);
}

}  // namespace
}  // namespace nowcalls::bench
