// What a configuration that was read again changes in a running server.
#include "server/config/config_changes.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "server/config/settings.h"

namespace nowcalls::server {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("live settings take their new value, and each is told with the one before") {
  const ServerConfig at_start;
  ServerConfig read;
  read.core.sweep_interval_ms = 50;
  read.core.limits.tokens_max = 5;
  read.core.limits.namespace_qps_max = 100;
  read.core.namespace_guards["shop"] = 7;
  read.log_level = Severity::kDebug;
  ServerConfig running;
  const ConfigChanges changes = ApplyLiveSettings(at_start, read, &running);
  CHECK(changes.applied == Lines{"log-level is debug now, and was info",
                                 "sweep-interval-ms is 50 now, and was 100",
                                 "tokens-max is 5 now, and was 20000000",
                                 "namespace-qps-max is 100 now, and was 30000",
                                 "namespace-guard is shop=7 now, and was not set"});
  CHECK(changes.need_restart.empty());
  CHECK(running.core.sweep_interval_ms == 50);
  CHECK(running.core.limits.tokens_max == 5);
  CHECK(running.core.guards().Of("shop") == 7);
  CHECK(running.core.guards().Of("api") == 100);
  CHECK(running.log_level == Severity::kDebug);
  CHECK(ApplyLiveSettings(at_start, read, &running).applied.empty());
}

TEST_CASE("a setting that is not live keeps its value, and is named as long as it differs") {
  const ServerConfig at_start;
  ServerConfig read;
  read.data_dir = "/elsewhere";
  read.core.limits.history_max = 3;
  ServerConfig running;
  running.data_dir = "/srv/nowcalls-data";  // As the start made it of the relative path.
  for (int i = 0; i < 2; ++i) {
    const ConfigChanges changes = ApplyLiveSettings(at_start, read, &running);
    CHECK(changes.applied.empty());
    CHECK(changes.need_restart == Lines{"data-dir", "history-max"});
  }
  CHECK(running.data_dir == "/srv/nowcalls-data");
  CHECK(running.core.limits.history_max == Limits().history_max);
  CHECK(ApplyLiveSettings(at_start, at_start, &running).need_restart.empty());
}

TEST_CASE("what the manual calls live is what can change without harm to what is open") {
  std::set<std::string_view> live;
  for (const Setting& setting : Settings()) {
    if (setting.is_live()) live.insert(setting.name);
  }
  for (const char* name : {"log-level", "log-ends", "sweep-interval-ms", "sweep-keys-max",
                           "sweep-budget-us", "tokens-max", "sessions-max", "keys-max",
                           "namespace-qps-max", "namespace-guard", "disk-free-low-bytes",
                           "disk-free-high-bytes", "waiters-per-rule-max", "output-stalled-ms"}) {
    CAPTURE(name);
    CHECK(live.contains(name));
  }
  for (const char* name : {"listen", "data-dir", "durability", "rules", "expire-strategy",
                           "connections-max", "history-max", "log-format"}) {
    CAPTURE(name);
    CHECK_FALSE(live.contains(name));
  }
}

}  // namespace
}  // namespace nowcalls::server
