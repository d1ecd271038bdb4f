#include "web/sentinel/command_center.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/host_port.h"
#include "base/text.h"
#include "nowcalls_version.h"
#include "web/json_text.h"
#include "web/sentinel/dashboard_rules.h"
#include "web/sentinel/host_name.h"
#include "web/sentinel/nodes.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kForbidden = 403;
constexpr int kUnavailable = 503;
constexpr std::string_view kText = "text/plain; charset=UTF-8";  // As Sentinel writes it.

Response TextOf(int status, std::string body) {
  return {.status = status, .type = std::string(kText), .body = std::move(body)};
}
Response Answer(std::string body) { return TextOf(kOk, std::move(body)); }
Response AnswerJson(const ordered_json& json) { return Answer(JsonText(json)); }

// What would set something.
bool IsSetter(std::string_view name) {
  constexpr std::string_view kServerSetters = "cluster/server/modify";
  constexpr std::string_view kClientSetters = "cluster/client/modify";
  return name.starts_with("set") || name.starts_with(kServerSetters) ||
         name.starts_with(kClientSetters);
}

Response RefuseToSet(std::string_view name) {
  return TextOf(kBadRequest,
                std::string(name) +
                    ": nowcalls is read-only here. Its rules come from rule files or "
                    "`nowcalls-admin rules load`, its settings from its configuration");
}

ordered_json NamespaceSet(const Snapshot& snapshot) {
  ordered_json names = ordered_json::array();
  for (const wire::NamespaceRow& row : snapshot.namespaces) names.push_back(row.name_space);
  return names;
}

// --namespace-qps-max; 0: as many as come.
int64_t AllowedQps(const Snapshot& snapshot) {
  const auto limit = ordered_json::json_pointer("/limits/namespace_qps_max");
  return snapshot.info->value(limit, int64_t{0});
}

// The guard of the namespace; without one, that of all.
int64_t AllowedQps(const Snapshot& snapshot, const wire::NamespaceRow& row) {
  return row.requests_max ? static_cast<int64_t>(*row.requests_max) : AllowedQps(snapshot);
}

int64_t AllowedQps(const Snapshot& snapshot, const std::string& name_space) {
  const auto row =
      std::find_if(snapshot.namespaces.begin(), snapshot.namespaces.end(),
                   [&](const wire::NamespaceRow& known) { return known.name_space == name_space; });
  return row == snapshot.namespaces.end() ? AllowedQps(snapshot) : AllowedQps(snapshot, *row);
}

// What Sentinel's token server has as defaults, and this one for each of its rules.
ordered_json FlowConfig(int64_t allowed_qps) {
  return {{"exceedCount", 1.0},
          {"maxOccupyRatio", 1.0},
          {"intervalMs", 1000},
          {"sampleCount", 10},
          {"maxAllowedQps", allowed_qps}};
}

// "@10.0.0.7:51234" is the session of a connection; others have a client's name.
ordered_json ConnectionOf(const std::string& client_id) {
  std::string address = client_id;
  if (address.starts_with('@')) address.erase(0, 1);
  const Result<HostPort> peer = ParseHostPort(address);
  return {{"address", address}, {"host", peer.ok() ? peer->host : address}};
}

ordered_json Connections(const Snapshot& snapshot) {
  std::map<std::string_view, ordered_json> online;
  for (const wire::SessionRow& session : snapshot.sessions) {
    if (!session.online.value_or(false)) continue;
    online[session.name_space].push_back(ConnectionOf(session.client_id));
  }
  ordered_json groups = ordered_json::array();
  for (const wire::NamespaceRow& row : snapshot.namespaces) {
    // The count is of the namespace; the list is of the sessions that the snapshot has, up to its
    // bound.
    const auto found = online.find(row.name_space);
    groups.push_back({{"namespace", row.name_space},
                      {"connectedCount", row.sessions_online.value_or(0)},
                      {"connectionSet",
                       found == online.end() ? ordered_json::array() : std::move(found->second)}});
  }
  return groups;
}

// Calls a second of each namespace, which is what maxAllowedQps limits.
ordered_json RequestLimits(const Snapshot& snapshot, const Series& series) {
  std::map<std::string, int64_t> calls = CallsOfNamespaces(snapshot, series);
  ordered_json limits = ordered_json::array();
  for (const wire::NamespaceRow& row : snapshot.namespaces) {
    limits.push_back({{"namespace", row.name_space},
                      {"currentQps", static_cast<double>(calls[row.name_space])},
                      {"maxAllowedQps", AllowedQps(snapshot, row)}});
  }
  return limits;
}

Response RulesOf(const Snapshot& snapshot, DashboardRules kind, const std::string& name_space) {
  // An empty list would be taken for rules that are gone.
  if (snapshot.rules == nullptr) {
    return TextOf(kUnavailable, "the rules are being read: ask again in a second");
  }
  return AnswerJson(RulesForDashboard(*snapshot.rules, kind, name_space));
}

}  // namespace

struct CommandCenter::Command {
  std::string_view name;
  std::string_view doc;
  Response (CommandCenter::*handle)(const Asked& asked) const;
};

std::span<const CommandCenter::Command> CommandCenter::Commands() {
  using Center = CommandCenter;
  static constexpr Command kCommands[] = {
      {"api", "the commands", &Center::Api},
      {"version", "the version of the server", &Center::Version},
      {"basicInfo", "the machine", &Center::BasicInfo},
      {"metric", "figures a second: startTime=MS&endTime=MS[&identity=RESOURCE]", &Center::Metric},
      {"clusterNode", "resources; type=notZero leaves out idle ones", &Center::ClusterNode},
      {"jsonTree", "resources as a tree: the machine, its namespaces, their flows",
       &Center::JsonTree},
      {"getRules", "rules: type=flow; other types have none", &Center::GetRules},
      {"getParamFlowRules", "rules with a parameter", &Center::GetParamFlowRules},
      {"getClusterMode", "token server", &Center::GetClusterMode},
      {"cluster/server/info", "the token server and its connections", &Center::ServerInfo},
      {"cluster/server/metricList", "figures a second: namespace=NAME", &Center::ServerMetrics},
      {"cluster/server/flowRules", "flow rules: [namespace=NAME]", &Center::ServerFlowRules},
      {"cluster/server/paramRules", "rules with a parameter: [namespace=NAME]",
       &Center::ServerParamRules},
      {"cluster/server/fetchConfig", "the settings of the token server", &Center::ServerConfig},
  };
  return kCommands;
}

CommandCenter::CommandCenter(const SentinelDashboardOptions& options, SnapshotSource* source)
    : options_(options), source_(source), began_unix_ms_(WallMs()) {}

bool CommandCenter::Admits(const std::string& peer) const {
  // A socket of both families shows IPv4 peers as mapped addresses.
  constexpr std::string_view kMapped = "::ffff:";
  const std::string address = peer.starts_with(kMapped) ? peer.substr(kMapped.size()) : peer;
  return options_.peers.empty() ||
         std::find(options_.peers.begin(), options_.peers.end(), address) != options_.peers.end();
}

Response CommandCenter::Handle(const Request& request) const {
  if (!Admits(request.peer.host)) {
    return TextOf(kForbidden,
                  request.peer.host + " may not ask: sentinel-command-peers does not name it");
  }
  const std::string_view path = request.path;
  const std::string_view name = path.starts_with('/') ? path.substr(1) : path;
  if (name.empty()) return TextOf(kBadRequest, "Invalid command");
  const auto commands = Commands();
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const Command& known) { return known.name == name; });
  if (command == commands.end()) {
    if (IsSetter(name)) return RefuseToSet(TerminalText(Shortened(name)));
    return TextOf(kBadRequest, "Unknown command \"" + TerminalText(Shortened(name)) + "\"");
  }
  // The lists that its answers need. The first answers come without them.
  source_->WatchSessions();
  source_->WatchRules();
  const SnapshotPtr snapshot = source_->latest();
  if (snapshot->info == nullptr) {
    return TextOf(kUnavailable, "the server has not been asked yet: " + snapshot->problem);
  }
  return (this->*command->handle)({request, *snapshot});
}

Response CommandCenter::Metric(const Asked& asked) const {
  // Without a beginning Sentinel has nothing to say, either.
  const std::string from = asked.request.Query("startTime");
  if (from.empty()) return Answer(std::string());
  const std::optional<int64_t> from_ms = NumberOf<int64_t>(from);
  const std::optional<int64_t> to_ms =
      NumberOf<int64_t>(asked.request.Query("endTime", std::to_string(asked.snapshot.unix_ms)));
  if (!from_ms || !to_ms || *from_ms < 0 || *to_ms < 0) {
    return TextOf(kBadRequest, "startTime and endTime must be times in ms since 1970");
  }
  return Answer(MetricLines(asked.snapshot, source_->series(),
                            {*from_ms, *to_ms, asked.request.Query("identity")}));
}

Response CommandCenter::ClusterNode(const Asked& asked) const {
  const bool idle = asked.request.Query("type") != "notZero";
  return Answer(ClusterNodes(asked.snapshot, source_->series(), idle));
}

Response CommandCenter::JsonTree(const Asked& asked) const {
  return Answer(NodeTree(asked.snapshot, source_->series()));
}

Response CommandCenter::GetRules(const Asked& asked) const {
  const std::string type = asked.request.Query("type");
  if (type == "flow") return RulesOf(asked.snapshot, DashboardRules::kFlow, "");
  if (type == "degrade" || type == "authority" || type == "system") return Answer("[]");
  return TextOf(kBadRequest, "invalid type");
}

Response CommandCenter::GetParamFlowRules(const Asked& asked) const {
  return RulesOf(asked.snapshot, DashboardRules::kHotParameter, "");
}

Response CommandCenter::GetClusterMode(const Asked& /*asked*/) const {
  constexpr int kServer = 1;
  return AnswerJson({{"mode", kServer},
                     {"lastModified", began_unix_ms_},
                     {"clientAvailable", false},
                     {"serverAvailable", true}});
}

Response CommandCenter::ServerInfo(const Asked& asked) const {
  return AnswerJson({{"appName", options_.app},
                     {"port", token_port_.load()},
                     {"embedded", false},
                     {"namespaceSet", NamespaceSet(asked.snapshot)},
                     {"transport", Transport()},
                     {"flow", FlowConfig(AllowedQps(asked.snapshot))},
                     {"connection", Connections(asked.snapshot)},
                     {"requestLimitData", RequestLimits(asked.snapshot, source_->series())}});
}

Response CommandCenter::ServerMetrics(const Asked& asked) const {
  const std::string name_space = asked.request.Query("namespace");
  if (name_space.empty()) return TextOf(kBadRequest, "failed: namespace cannot be empty");
  return Answer(ClusterMetrics(asked.snapshot, source_->series(), name_space));
}

Response CommandCenter::ServerFlowRules(const Asked& asked) const {
  return RulesOf(asked.snapshot, DashboardRules::kFlow, asked.request.Query("namespace"));
}

Response CommandCenter::ServerParamRules(const Asked& asked) const {
  return RulesOf(asked.snapshot, DashboardRules::kHotParameter, asked.request.Query("namespace"));
}

Response CommandCenter::ServerConfig(const Asked& asked) const {
  const std::string name_space = asked.request.Query("namespace");
  if (!name_space.empty()) {
    return AnswerJson({{"flow", FlowConfig(AllowedQps(asked.snapshot, name_space))}});
  }
  return AnswerJson({{"transport", Transport()},
                     {"flow", FlowConfig(AllowedQps(asked.snapshot))},
                     {"namespaceSet", NamespaceSet(asked.snapshot)}});
}

Response CommandCenter::Version(const Asked& /*asked*/) const { return Answer(NOWCALLS_VERSION); }

Response CommandCenter::BasicInfo(const Asked& /*asked*/) const {
  return AnswerJson({{"machine", HostName()}, {"ip", options_.listen.host}});
}

Response CommandCenter::Api(const Asked& /*asked*/) const {
  ordered_json list = ordered_json::array();
  for (const Command& command : Commands()) {
    list.push_back({{"url", "/" + std::string(command.name)}, {"desc", command.doc}});
  }
  return AnswerJson(list);
}

// A quiet connection lives.
ordered_json CommandCenter::Transport() const {
  return {{"port", token_port_.load()}, {"idleSeconds", 0}};
}

}  // namespace nowcalls::web
