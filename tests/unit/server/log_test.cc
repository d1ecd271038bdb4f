#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

#include "server/log/log_limiter.h"
#include "server/log/log_line.h"
#include "server/log/server_log.h"
#include "support/json.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kMoment = 1'714'564'800'007;  // 2024-05-01T12:00:00.007Z

TEST_CASE("a text log line has the time in UTC, the level and the message") {
  CHECK(FormatLogLine(LogFormat::kText, kMoment, Severity::kInfo, "serving on 127.0.0.1:18730") ==
        "2024-05-01T12:00:00.007Z info  serving on 127.0.0.1:18730\n");
  CHECK(FormatLogLine(LogFormat::kText, kMoment, Severity::kError, "x") ==
        "2024-05-01T12:00:00.007Z error x\n");
}

TEST_CASE("a message cannot begin a second text log line or drive the terminal") {
  CHECK(FormatLogLine(LogFormat::kText, kMoment, Severity::kWarn, "a\nb\x1b[2J\x7f") ==
        "2024-05-01T12:00:00.007Z warn  a\\x0ab\\x1b[2J\\x7f\n");
}

TEST_CASE("a message cannot reorder a log line, or break it where only some programs see") {
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  const std::string message = "a\u202eb\u2028c\xff \u00e9";
  CHECK(FormatLogLine(LogFormat::kText, kMoment, Severity::kWarn, message) ==
        "2024-05-01T12:00:00.007Z warn  a\\u{202e}b\\u{2028}c\\xff \u00e9\n");
  CHECK(FormatLogLine(LogFormat::kJson, kMoment, Severity::kWarn, message) ==
        R"({"ts":"2024-05-01T12:00:00.007Z","level":"warn","msg":"a\u202eb\u2028c)"
        "\ufffd \u00e9\"}\n");
}

TEST_CASE("a JSON log line is one object with ts, level and msg in this order") {
  CHECK(FormatLogLine(LogFormat::kJson, kMoment, Severity::kDebug, "hello") ==
        R"({"ts":"2024-05-01T12:00:00.007Z","level":"debug","msg":"hello"})"
        "\n");
}

TEST_CASE("a JSON log line survives quotes, control characters and bytes that are not UTF-8") {
  const std::string message = "say \"hi\"\\\n\t\x01 \xff\xfe gr\xc3\xbc\xc3\x9f";
  const std::string line = FormatLogLine(LogFormat::kJson, kMoment, Severity::kWarn, message);
  CHECK(line.find('\n') == line.size() - 1);
  const auto object = testing::Json::parse(line);
  CHECK(object["level"] == "warn");
  CHECK(object["msg"] == "say \"hi\"\\\n\t\x01 \xef\xbf\xbd\xef\xbf\xbd gr\xc3\xbc\xc3\x9f");
}

TEST_CASE("the fields of a line stand behind its message in JSON, and not in text") {
  const LogFields fields = {{"peer", "127.0.0.1:5"},
                            {"token", "9223372036854775809"},
                            {"flow", "1001", /*number=*/true},
                            {"reason", "say \"hi\" \xff"}};
  CHECK(FormatLogLine(LogFormat::kJson, kMoment, Severity::kWarn, "text", fields) ==
        R"({"ts":"2024-05-01T12:00:00.007Z","level":"warn","msg":"text","peer":"127.0.0.1:5",)"
        R"("token":"9223372036854775809","flow":1001,"reason":"say \"hi\" )"
        "\xef\xbf\xbd\"}\n");
  CHECK(FormatLogLine(LogFormat::kText, kMoment, Severity::kWarn, "text", fields) ==
        "2024-05-01T12:00:00.007Z warn  text\n");
}

TEST_CASE("lines about peers, acts and ends have a bound each, and the server's own have none") {
  std::ostringstream logged;
  const auto before = spdlog::default_logger();
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(logged);
  sink->set_pattern("%v");
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  Limits limits;
  limits.log_lines_per_second_max = 2;
  limits.log_act_lines_per_second_max = 3;
  limits.log_end_lines_per_second_max = 1;
  ServerLog log(limits);
  const Instant now{50'000};
  for (int i = 0; i < 5; ++i) {
    log.Write(Severity::kWarn, LogTopic::kPeer, "peer", {}, now);
    log.Write(Severity::kWarn, LogTopic::kAct, "act", {}, now);
    log.Write(Severity::kWarn, LogTopic::kServer, "server", {}, now);
    log.Write(Severity::kInfo, LogTopic::kEnd, "end", {}, now);
  }
  CHECK(log.NextReport() == now + 1000);
  log.ReportSuppressed(now + 999);
  log.ReportSuppressed(now + 1000);
  CHECK(log.NextReport() == kNever);
  spdlog::set_default_logger(before);
  CHECK(logged.str() ==
        "peer\nact\nserver\nend\npeer\nact\nserver\nact\nserver\nserver\nserver\n"
        "3 log lines about peers were suppressed in the last second\n"
        "2 log lines about what administrators changed were suppressed in the last second\n"
        "4 log lines about ends of tokens were suppressed in the last second\n");
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
