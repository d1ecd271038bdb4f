#include "bench/report.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "support/json.h"

namespace nowcalls::bench {
namespace {

using testing::Json;

constexpr int64_t kReportedSecond = 1'000'000'000;
constexpr int64_t kReportedMs = 1'000'000;

// Two seconds: three grants of 1, 2 and 3 ms, two releases of 4 ms, a refusal and an error.
std::unique_ptr<LoadResult> SomeResult() {
  auto result = std::make_unique<LoadResult>();
  Recorder& load = result->load;
  load.Count(0, 2 * kReportedSecond);
  for (int64_t i = 1; i <= 3; ++i) load.Granted(100, 100 + i * kReportedMs);
  load.Released(kReportedSecond, kReportedSecond + 4 * kReportedMs);
  load.Released(kReportedSecond, kReportedSecond + 4 * kReportedMs);
  load.Refused(RefusedBy::kLevel, kReportedSecond, kReportedSecond + kReportedMs);
  load.Failed("OVERLOADED", "sessions_max \xff", kReportedSecond + kReportedMs);
  result->counted_ns = 2 * kReportedSecond;
  result->seconds = load.TakeSeconds(3 * kReportedSecond);
  result->before = {1.0, ProcessUsage{10.0, 1 << 20}};
  result->after = {1.5, ProcessUsage{11.0, 2 << 20}};
  return result;
}

TEST_CASE("the JSON of a run has everything, and its numbers add up") {
  Options options;
  options.server_pid = 42;
  const std::string text = ReportJson(options, {"0.1.0", "sync"}, *SomeResult());
  CHECK(text.back() == '\n');
  const Json json = Json::parse(text);
  CHECK(json.at("target").at("url") == "nowcalls://127.0.0.1:18730");
  CHECK(json.at("target").at("durability") == "sync");
  CHECK(json.at("operations") == 5);
  CHECK(json.at("operations_per_s") == 2.5);
  CHECK(json.at("counts").at("granted") == 3);
  CHECK(json.at("counts").at("released") == 2);
  CHECK(json.at("counts").at("refused") == 1);
  CHECK(json.at("counts").at("refused_by") == Json{{"level", 1}});
  CHECK(json.at("counts").at("errors") == 1);
  CHECK(json.at("counts").at("errors_by_name").at("OVERLOADED").at("count") == 1);
  const Json& latency = json.at("latency_us");
  CHECK(latency.at("acquire").at("count") == 3);
  CHECK(latency.at("acquire").at("p50").get<double>() == doctest::Approx(2000).epsilon(0.001));
  CHECK(latency.at("acquire").at("max") == 3000);
  CHECK(latency.at("both").at("count") == 5);
  CHECK(latency.at("both").at("p99.99").get<double>() == doctest::Approx(4000).epsilon(0.001));
  CHECK(latency.at("refused").at("count") == 1);
  uint64_t operations = 0;
  for (const Json& second : json.at("seconds"))
    operations += second.at("operations").get<uint64_t>();
  CHECK(operations == 5);
  CHECK(json.at("client_cpu_s") == 0.5);
  CHECK(json.at("server").at("cpu_s") == 1.0);
  CHECK(json.at("server").at("resident_bytes") == 2 << 20);
  CHECK_FALSE(json.contains("expiring"));
}

TEST_CASE("the JSON of a run tells tokens that expire apart") {
  Options options;
  options.expire_rate = 5;
  const auto result = SomeResult();
  result->expiring.Count(0, 2 * kReportedSecond);
  result->expiring.Granted(0, kReportedMs);
  result->expiring_seconds = result->expiring.TakeSeconds(3 * kReportedSecond);
  const Json json = Json::parse(ReportJson(options, {}, *result));
  CHECK(json.at("operations") == 5);
  CHECK(json.at("expiring").at("counts").at("granted") == 1);
  CHECK(json.at("expiring").at("latency_us").at("max") == 1000);
}

TEST_CASE("both reports of a fill tell what was granted in all, and how long the tokens live") {
  Options options;
  options.command = Command::kFill;
  options.tokens = 100;
  options.hold_ms = 7000;
  const auto result = SomeResult();
  result->granted_ever = 4;  // One of them after the counted seconds.
  Json json = Json::parse(ReportJson(options, {}, *result));
  CHECK(json.at("granted_in_all") == 4);
  CHECK(json.at("counts").at("granted") == 3);
  CHECK(json.at("options").at("tokens") == 100);
  CHECK(json.at("options").at("hold_ms") == 7000);
  CHECK(json.at("options").at("client_offline_ms") == 7000);
  const std::string table = ReportTable(options, {}, *result);
  CAPTURE(table);
  CHECK(table.find("  granted in all                      4  of 100 tokens\n") !=
        std::string::npos);
  options.client_offline_ms = 300;
  json = Json::parse(ReportJson(options, {}, *result));
  CHECK(json.at("options").at("client_offline_ms") == 300);
  options.command = Command::kLoad;
  CHECK_FALSE(Json::parse(ReportJson(options, {}, *result)).contains("granted_in_all"));
  CHECK(ReportTable(options, {}, *result).find("in all") == std::string::npos);
}

TEST_CASE("the table of a run names refusals and errors, and leaves out what did not happen") {
  const std::string table = ReportTable({}, {"0.1.0", "sync"}, *SomeResult());
  CAPTURE(table);
  CHECK(table.find("nowcalls://127.0.0.1:18730, version 0.1.0, durability sync") == 0);
  CHECK(table.find("2.5 /s") != std::string::npos);
  CHECK(table.find("    level") != std::string::npos);
  CHECK(table.find("    OVERLOADED") != std::string::npos);
  CHECK(table.find("the first: 'sessions_max \\xff'") != std::string::npos);
  CHECK(table.find("server CPU 1.00 s (50 %), memory 2.0 MiB, 1.0 MiB before") !=
        std::string::npos);
  CHECK(table.find("token_limit") == std::string::npos);
  CHECK(table.find("never released") == std::string::npos);
  CHECK(table.find("send delay") == std::string::npos);
}

TEST_CASE("the table of a run has no control characters of a server") {
  const auto result = SomeResult();
  result->load.Failed("\x1b[2J", "\x1b[2J", kReportedSecond + kReportedMs);
  CHECK(ReportTable({}, {}, *result).find('\x1b') == std::string::npos);
}

TEST_CASE("the table of a run says when the client itself was the limit") {
  const auto result = SomeResult();
  const std::string busy = "the client was busy all the time";
  CHECK(ReportTable({}, {}, *result).find(busy) == std::string::npos);
  result->after.client_cpu_s = result->before.client_cpu_s + 1.9;
  CHECK(ReportTable({}, {}, *result).find(busy) != std::string::npos);
}

}  // namespace
}  // namespace nowcalls::bench
