#include "crash/rule_sets.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "base/clock.h"
#include "support/server_process.h"

namespace nowcalls::crash {
namespace {

using testing::Json;
using LevelByFlow = std::map<int64_t, int64_t>;

constexpr int64_t kInForceUs = INT64_MAX;
constexpr int64_t kCountForEachSession = 6;

constexpr int64_t kLevelOfKeys = 12;
constexpr int64_t kLevelOfFirstKey = 5;

// Flows that nobody uses: one after the other of kFillers has the version for its level, and one
// of them is missing in each version.
constexpr int64_t kFillers = 60;
constexpr int64_t kFirstFillerOfFile = 1'000;
constexpr int64_t kFirstFillerOfMoving = 3'000;

// What changes from version to version, of the flows that clients use.
int64_t LevelIn(int64_t version, const FlowFacts& flow) {
  switch (flow.flow_id) {
    case 1: return version % 2 == 0 ? flow.level : 40;
    case 3: return version % 3 == 0 ? flow.level : 150;
    case 11: return version % 2 == 0 ? flow.level : 20;
    case 12: return version % 3 == 0 ? flow.level : 60;
    default: return flow.level == 0 ? kCountForEachSession : flow.level;
  }
}

bool Moves(int64_t flow_id) {
  return flow_id == 1 || flow_id == 3 || flow_id == 11 || flow_id == 12;
}

LevelByFlow FillersOf(int64_t version, int64_t first) {
  LevelByFlow levels;
  for (int64_t i = 0; i < kFillers; ++i) {
    if (i != version % kFillers) levels[first + i] = 1'000 + version;
  }
  return levels;
}

LevelByFlow LevelsOf(const std::string& name_space, int64_t version) {
  if (version < 0) return {};
  LevelByFlow levels = FillersOf(
      version, name_space == RuleSets::kMoving ? kFirstFillerOfMoving : kFirstFillerOfFile);
  for (const auto& flow : RuleSets::Flows()) {
    if (RuleSets::NameSpaceOf(flow.flow_id) != name_space) continue;
    levels[RuleOfLane(flow.flow_id)] =
        IsKeyLane(flow.flow_id) ? kLevelOfKeys : LevelIn(version, flow);
  }
  return levels;
}

// Makes it a rule with a level for each key; the first one has less.
void AddKeys(Json* rule) {
  (*rule)["paramIdx"] = 0;
  (*rule)["paramFlowItemList"] = Json::array({{{"object", KeyOfLane(kFirstKeyLane)},
                                               {"count", kLevelOfFirstKey},
                                               {"classType", "java.lang.String"}}});
}

Json SetOf(const std::string& name_space, int64_t version) {
  std::map<int64_t, FlowFacts> used;
  for (const auto& flow : RuleSets::Flows()) used[RuleOfLane(flow.flow_id)] = flow;
  Json rules = Json::array();
  for (const auto& [number, level] : LevelsOf(name_space, version)) {
    const int64_t flow_id = number == kKeyedRule ? kKeyedFlow : number;
    Json cluster = Json::object();
    const auto facts = used.find(number);
    if (facts != used.end()) {
      cluster["resourceTimeout"] = facts->second.resource_timeout_ms;
      cluster["clientOfflineTime"] = facts->second.client_offline_ms;
      if (facts->second.level == 0) cluster["thresholdType"] = 0;
      if (facts->second.max_hold_ms > 0) cluster["maxHoldMs"] = facts->second.max_hold_ms;
    }
    Json rule = testing::RuleJson(flow_id, static_cast<double>(level), cluster);
    if (number == kKeyedRule) AddKeys(&rule);
    if (flow_id == RuleSets::kWindowFlow) rule["clusterConfig"]["windowIntervalMs"] = 10'000;
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace

// One flow for each family of deadlines in the ledger. Then one with the sessions in its level,
// whose tokens live for 3 s at most, and one that is swept all the time. Then one that is lost by
// clients that stay away, and one of which many tokens are taken at once. Those of "moving" live as
// long as flow 1's.
std::vector<FlowFacts> RuleSets::Flows() {
  std::vector<FlowFacts> lanes = {
      {1, 60, 15'000, 5'000},           {2, 100'000, 300'000, 5'000},   {3, 200, 150, 5'000},
      {4, 0, 15'000, 5'000, 3'000},     {5, 500, 5'000, 100},           {6, 100'000, 300, 5'000},
      {kKeyedFlow, 80, 15'000, 5'000},  {11, 50, 15'000, 5'000},        {12, 100, 2'000, 5'000},
      {kWindowFlow, 50, 15'000, 5'000}, {kRetiredFlow, 0, 2'000, 2'000}};
  for (int64_t i = 0; i < kKeys; ++i) {
    lanes.push_back({kFirstKeyLane + i, i == 0 ? kLevelOfFirstKey : kLevelOfKeys, 15'000, 5'000});
  }
  return lanes;
}

std::vector<int64_t> RuleSets::FlowIds() {
  std::vector<int64_t> ids;
  for (const auto& flow : Flows()) ids.push_back(flow.flow_id);
  return ids;
}

RuleSets::RuleSets(std::string file) : file_(std::move(file)) { WriteFile(); }

void RuleSets::BeginCycle(int64_t started_us) {
  changes_.clear();
  AddChanges(file_space_, file_space_.last, started_us, started_us);
  AddChanges(moving_, moving_.possible.back(), started_us, started_us);
}

void RuleSets::AddChanges(const NameSpace& space, int64_t version, int64_t from_us,
                          int64_t since_us) {
  for (const auto& [flow_id, level] : LevelsOf(space.name, version)) {
    if (Moves(flow_id)) changes_.push_back({flow_id, level, from_us, since_us});
  }
}

// Renamed into place, so that no server reads half a file.
void RuleSets::WriteFile() {
  file_space_.possible.push_back(++file_space_.last);
  testing::WriteStringToFile(file_ + ".new", SetOf(file_space_.name, file_space_.last).dump());
  std::filesystem::rename(file_ + ".new", file_);
}

void RuleSets::Load(testing::RpcClient* client) {
  const size_t from = changes_.size();
  BeginLoad(client);
  const testing::Reply reply = client->Receive();
  if (!reply.ok()) throw std::runtime_error("rules_load: " + reply.ToString());
  for (size_t i = from; i < changes_.size(); ++i) changes_[i].since_us = BoottimeUs();
  moving_.possible = {moving_.last};
}

void RuleSets::BeginLoad(testing::RpcClient* client) {
  moving_.possible.push_back(++moving_.last);
  AddChanges(moving_, moving_.last, BoottimeUs(), kInForceUs);
  client->Send("rules_load", {kMoving, SetOf(kMoving, moving_.last)});
}

void RuleSets::BeginReload(const testing::Process& server) {
  const int64_t now_us = BoottimeUs();
  WriteFile();
  AddChanges(file_space_, file_space_.last, now_us, kInForceUs);
  server.Signal(SIGHUP);
}

void RuleSets::RewriteForTheEnd() {
  while ((file_space_.last + 1) % 6 != 0) ++file_space_.last;
  WriteFile();
}

int64_t RuleSets::LevelOf(int64_t flow_id) const {
  if (IsKeyLane(flow_id)) return flow_id == kFirstKeyLane ? kLevelOfFirstKey : kLevelOfKeys;
  const bool moving = NameSpaceOf(flow_id) == kMoving;
  const NameSpace& space = moving ? moving_ : file_space_;
  const LevelByFlow levels =
      LevelsOf(space.name, moving ? moving_.possible.back() : file_space_.last);
  const auto found = levels.find(flow_id);
  return found == levels.end() ? 0 : found->second;
}

std::string RuleSets::WrongIn(const NameSpace& space, const testing::Source& source,
                              int64_t* version) {
  LevelByFlow found;
  for (const auto& row : testing::AdminRows(source, {"rules", "list", "--namespace", space.name})) {
    const auto flow_id = row.at("clusterConfig").at("flowId").get<int64_t>();
    found[row.contains("paramIdx") ? kKeyedRule : flow_id] = row.at("count").get<int64_t>();
  }
  std::string versions;
  for (const int64_t possible : space.possible) {
    *version = possible;
    if (found == LevelsOf(space.name, possible)) return {};
    versions += " " + std::to_string(possible);
  }
  std::map<int64_t, int> parts;
  for (const auto& [flow_id, level] : found) {
    if (flow_id >= kFirstFillerOfFile && flow_id != kKeyedRule) ++parts[level - 1'000];
  }
  std::string text = "I8 the rules of namespace " + space.name + " are no set of version" +
                     versions + ", but have " + std::to_string(found.size()) + " rules";
  for (const auto& [part, rules] : parts) {
    text += ", " + std::to_string(rules) + " of version " + std::to_string(part);
  }
  return text;
}

Violations RuleSets::Check(const testing::Source& source) const {
  Violations violations;
  for (const auto* space : {&file_space_, &moving_}) {
    int64_t version = kNone;
    const std::string wrong = WrongIn(*space, source, &version);
    if (!wrong.empty()) violations.push_back(wrong);
  }
  return violations;
}

Violations RuleSets::CheckAndAdopt(const testing::Source& source) {
  Violations violations;
  newest_found_ = true;
  for (auto* space : {&file_space_, &moving_}) {
    int64_t version = kNone;
    const std::string wrong = WrongIn(*space, source, &version);
    if (!wrong.empty()) violations.push_back(wrong);
    newest_found_ = newest_found_ && version == space->last;
    space->possible = {version};
  }
  // The next start loads the file, whatever this one had of it.
  if (file_space_.possible.front() != file_space_.last) {
    file_space_.possible.push_back(file_space_.last);
  }
  return violations;
}

}  // namespace nowcalls::crash
