#include "crash/ledger_view.h"

#include <stdexcept>

#include "crash/lanes.h"

namespace nowcalls::crash {

namespace {

void AddKeys(const testing::Source& source, LedgerView* view) {
  const std::string flow = std::to_string(kKeyedFlow);
  for (const auto& row : testing::AdminRows(source, {"params", "--flow", flow})) {
    const int64_t lane = LaneOfKey(row.at("param").get<std::string>());
    view->now_calls[lane] = row.at("now_calls").get<int64_t>();
    view->token_counts[lane] = row.at("tokens").get<int64_t>();
  }
}

}  // namespace

LedgerView ReadLedger(const testing::Source& source) {
  LedgerView view;
  for (const auto& row : testing::AdminRows(source, {"dump"})) {
    DumpedToken token;
    token.token_id = row.at("token_id").get<uint64_t>();
    token.flow_id = row.at("flow_id").get<int64_t>();
    // A number of 63 bits is a text in JSON lines.
    const auto& instance = row.at("instance");
    token.client_id = OwnerOf(row.at("client_id").get<std::string>(),
                              instance.is_null() ? 0 : std::stoull(instance.get<std::string>()));
    if (!row.at("param").is_null()) {
      token.flow_id = LaneOfKey(row.at("param").get<std::string>());
    }
    token.count = row.at("count").get<int64_t>();
    token.fence = row.at("fence").get<uint64_t>();
    token.issued_ms = row.at("issued_ms").get<int64_t>();
    token.deadline_ms = row.at("deadline_ms").get<int64_t>();
    view.tokens.push_back(token);
  }
  for (const auto& row : testing::AdminRows(source, {"stat"})) {
    const auto flow_id = row.at("flow_id").get<int64_t>();
    if (row.at("kind") == "value") {
      if (flow_id == kKeyedFlow) AddKeys(source, &view);
      continue;
    }
    view.now_calls[flow_id] = row.at("now_calls").get<int64_t>();
    view.token_counts[flow_id] = row.at("tokens").get<int64_t>();
  }
  return view;
}

CountByFlow ReportedNowCalls(testing::RpcClient* client, const std::vector<int64_t>& flow_ids) {
  CountByFlow now_calls;
  for (const int64_t flow_id : flow_ids) {
    now_calls[flow_id] = 0;
    if (IsKeyLane(flow_id)) continue;
    const auto reply = client->Call("flow", testing::Json::array({flow_id, "flow"}));
    if (reply.error_name == "BAD_PARAMS") continue;  // Neither a rule nor tokens.
    if (!reply.ok()) throw std::runtime_error("flow: " + reply.ToString());
    now_calls[flow_id] = reply.result.at("now_calls").get<int64_t>();
  }
  const auto keys = client->Call("params", {kKeyedFlow, 2 * kKeys});
  if (keys.error_name == "BAD_PARAMS") return now_calls;
  if (!keys.ok()) throw std::runtime_error("params: " + keys.ToString());
  for (const auto& row : keys.result.at(0)) {
    const int64_t lane = LaneOfKey(row.at("param").get<std::string>());
    if (now_calls.contains(lane)) now_calls[lane] = row.at("now_calls").get<int64_t>();
  }
  return now_calls;
}

}  // namespace nowcalls::crash
