#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/summary.h"
#include "nowcalls_version.h"

namespace nowcalls::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string_view CommandName(Command command) {
  switch (command) {
    case Command::kLoad: return "load";
    case Command::kFill: return "fill";
    case Command::kIdle: return "idle";
  }
  return "";
}

Json OptionsJson(const Options& options) {
  Json json = {{"connections", options.connections}};
  if (options.command == Command::kIdle) {
    json["duration_s"] = static_cast<double>(options.duration_ms) / 1000;
    return json;
  }
  json.update({{"namespace", options.name_space},
               {"in_flight", options.in_flight},
               {"flows", options.flows},
               {"first_flow", options.first_flow},
               {"level", options.level},
               {"hold_ms", options.hold_ms}});
  if (options.target.kind == TargetKind::kNowcalls) json["request_ids"] = options.request_ids;
  if (options.command == Command::kFill) {
    json["tokens"] = options.tokens;
    json["client_offline_ms"] =
        options.client_offline_ms > 0 ? options.client_offline_ms : options.hold_ms;
    return json;
  }
  const bool uniform = options.flow_distribution == FlowDistribution::kUniform;
  json.update({{"protocol", LanguageName(options.language)},
               {"operation", OperationName(options.operation)},
               {"keys", options.keys},
               {"rate", options.rate},
               {"flow_distribution", uniform ? "uniform" : "round-robin"},
               {"seed", options.seed},
               {"warm_up_s", static_cast<double>(options.warm_up_ms) / 1000},
               {"duration_s", static_cast<double>(options.duration_ms) / 1000},
               {"behind_max_ms", options.behind_ms_max},
               {"expire_rate", options.expire_rate},
               {"expire_after_ms", options.expire_after_ms}});
  return json;
}

Json QuantilesJson(const Histogram& histogram) {
  Json json = {{"count", histogram.count()}};
  for (const Quantile& quantile : kQuantiles) {
    json[std::string(quantile.name)] = Microseconds(histogram.Quantile(quantile.parts_per_million));
  }
  json["max"] = Microseconds(histogram.max());
  return json;
}

Json LatenciesJson(const Recorder& recorder) {
  Histogram both = recorder.acquire();
  both.Merge(recorder.release());
  return {{"acquire", QuantilesJson(recorder.acquire())},
          {"release", QuantilesJson(recorder.release())},
          {"both", QuantilesJson(both)},
          {"refused", QuantilesJson(recorder.refused())},
          {"send_delay", QuantilesJson(recorder.send_delay())}};
}

Json CountsJson(const Recorder& recorder, const std::vector<SecondRow>& seconds) {
  const Totals totals = Sum(seconds);
  Json refusals = Json::object();
  for (size_t i = 1; i < recorder.refusals().size(); ++i) {
    if (recorder.refusals()[i] == 0) continue;
    refusals[std::string(RefusalName(i))] = recorder.refusals()[i];
  }
  Json errors = Json::object();
  for (const auto& [name, error] : recorder.errors()) {
    errors[name] = {{"count", error.count}, {"first", error.first_text}};
  }
  return {{"granted", totals.granted}, {"released", totals.released},
          {"refused", totals.refused}, {"refused_by", std::move(refusals)},
          {"errors", totals.errors},   {"errors_by_name", std::move(errors)}};
}

Json SecondsJson(const std::vector<SecondRow>& seconds) {
  Json rows = Json::array();
  for (const SecondRow& second : seconds) {
    rows.push_back({{"operations", second.granted + second.released},
                    {"granted", second.granted},
                    {"released", second.released},
                    {"refused", second.refused},
                    {"errors", second.errors},
                    {"p99_us", Microseconds(second.p99_ns)},
                    {"max_us", Microseconds(second.max_ns)}});
  }
  return rows;
}

Json ServerUsageJson(int64_t pid, const LoadResult& result) {
  if (!result.before.server || !result.after.server) return nullptr;
  return {{"pid", pid},
          {"cpu_s", result.after.server->cpu_s - result.before.server->cpu_s},
          {"resident_bytes_before", result.before.server->resident_bytes},
          {"resident_bytes", result.after.server->resident_bytes}};
}

}  // namespace

std::string ReportJson(const Options& options, const ServerFacts& facts, const LoadResult& result) {
  const uint64_t operations = Sum(result.seconds).operations();
  Json json = {{"nowcalls_bench", NOWCALLS_VERSION},
               {"command", CommandName(options.command)},
               {"target",
                {{"url", options.target.ToString()},
                 {"version", facts.version},
                 {"durability", facts.durability}}},
               {"options", OptionsJson(options)},
               {"interrupted", result.interrupted},
               {"connect_s", static_cast<double>(result.connect_ns) / 1e9},
               {"counted_s", static_cast<double>(result.counted_ns) / 1e9}};
  if (options.command != Command::kIdle) {
    json["operations"] = operations;
    json["operations_per_s"] = PerSecond(operations, result.counted_ns);
    json["counts"] = CountsJson(result.load, result.seconds);
    json["latency_us"] = LatenciesJson(result.load);
    json["seconds"] = SecondsJson(result.seconds);
  }
  // Also what was granted outside the counted seconds, which `counts` leaves out.
  if (options.command == Command::kFill) {
    json["granted_in_all"] = result.granted_ever;
  }
  if (options.expire_rate > 0) {
    json["expiring"] = {{"counts", CountsJson(result.expiring, result.expiring_seconds)},
                        {"latency_us", QuantilesJson(result.expiring.acquire())}};
  }
  json["client_cpu_s"] = result.after.client_cpu_s - result.before.client_cpu_s;
  json["server"] = ServerUsageJson(options.server_pid, result);
  // Texts of a server may be no UTF-8; the report stays valid JSON.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace nowcalls::bench
