#include <doctest/doctest.h>

#include <string>

#include "server/log_limiter.h"
#include "server/log_line.h"
#include "support/json.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kMoment = 1'714'564'800'007;  // 2024-05-01T12:00:00.007Z

TEST_CASE("a text log line has the time in UTC, the level and the message") {
  CHECK(FormatLogLine(LogFormat::kText, kMoment, LogLevel::kInfo, "serving on 127.0.0.1:18730") ==
        "2024-05-01T12:00:00.007Z info  serving on 127.0.0.1:18730\n");
  CHECK(FormatLogLine(LogFormat::kText, kMoment, LogLevel::kError, "x") ==
        "2024-05-01T12:00:00.007Z error x\n");
}

TEST_CASE("a message cannot begin a second text log line or drive the terminal") {
  CHECK(FormatLogLine(LogFormat::kText, kMoment, LogLevel::kWarn, "a\nb\x1b[2J\x7f") ==
        "2024-05-01T12:00:00.007Z warn  a\\x0ab\\x1b[2J\\x7f\n");
}

TEST_CASE("a JSON log line is one object with ts, level and msg in this order") {
  CHECK(FormatLogLine(LogFormat::kJson, kMoment, LogLevel::kDebug, "hello") ==
        R"({"ts":"2024-05-01T12:00:00.007Z","level":"debug","msg":"hello"})"
        "\n");
}

TEST_CASE("a JSON log line survives quotes, control characters and bytes that are not UTF-8") {
  const std::string message = "say \"hi\"\\\n\t\x01 \xff\xfe gr\xc3\xbc\xc3\x9f";
  const std::string line = FormatLogLine(LogFormat::kJson, kMoment, LogLevel::kWarn, message);
  CHECK(line.find('\n') == line.size() - 1);
  const auto object = testing::Json::parse(line);
  CHECK(object["level"] == "warn");
  CHECK(object["msg"] == "say \"hi\"\\\n\t\x01 \xef\xbf\xbd\xef\xbf\xbd gr\xc3\xbc\xc3\x9f");
}

TEST_CASE("the log limiter admits so many lines a second and counts the others") {
  LogLimiter limiter(3);
  const Instant begin{50'000};
  CHECK(limiter.NextReport() == kNever);
  int admitted = 0;
  for (int i = 0; i < 10; ++i) admitted += limiter.Admit(begin + i) ? 1 : 0;
  CHECK(admitted == 3);
  CHECK(limiter.NextReport() == begin + 3 + 1000);
  CHECK(limiter.TakeSuppressed() == 7);
  CHECK(limiter.TakeSuppressed() == 0);
  CHECK(limiter.NextReport() == kNever);
}

TEST_CASE("lines about a peer and about acts are told from those that nobody may suppress") {
  for (const char* line :
       {"connection 127.0.0.1:5 does not speak MessagePack-RPC; closing it",
        "connection 127.0.0.1:5 was refused a backup: /b exists already",
        "connection 127.0.0.1:5 loaded the rules of namespace shop, which changes nothing: 1 ...",
        "client @127.0.0.1:5 of namespace shop has been offline for 2000 ms: reclaimed 1 token"}) {
    CAPTURE(line);
    CHECK(TopicOf(line) == LogTopic::kPeer);
  }
  for (const char* line : {"administrator 127.0.0.1:5 reclaimed token 7",
                           "administrator 127.0.0.1:5 began a backup to /b",
                           "namespace shop: 2 rules, 1 new or changed, 0 removed, 0 skipped",
                           "namespace shop: the drain of flow 1 ended with its rule"}) {
    CAPTURE(line);
    CHECK(TopicOf(line) == LogTopic::kAct);
  }
  for (const char* line :
       {"mass expiry guard: 9 of 10 sessions went offline", "sweep: reclaimed 3 expired tokens"}) {
    CAPTURE(line);
    CHECK(TopicOf(line) == LogTopic::kServer);
  }
}

TEST_CASE("the log limiter starts anew after a second") {
  LogLimiter limiter(1);
  CHECK(limiter.Admit(Instant{0}));
  CHECK_FALSE(limiter.Admit(Instant{999}));
  CHECK(limiter.Admit(Instant{1000}));
  CHECK_FALSE(limiter.Admit(Instant{1500}));
  CHECK(limiter.NextReport() == Instant{1999});  // A flood does not put it off.
  CHECK(limiter.TakeSuppressed() == 2);
  CHECK_FALSE(limiter.Admit(Instant{1999}));
  CHECK(limiter.NextReport() == Instant{2999});
}

}  // namespace
}  // namespace nowcalls::server
