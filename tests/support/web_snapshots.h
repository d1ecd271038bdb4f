// Snapshots of the web room that tests make, and a source that answers with one.
//
// Thread: one.
#ifndef NOWCALLS_SUPPORT_WEB_SNAPSHOTS_H_
#define NOWCALLS_SUPPORT_WEB_SNAPSHOTS_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "web/http.h"
#include "web/series.h"
#include "web/snapshot.h"
#include "web/snapshot_source.h"

namespace nowcalls::web {

inline FlowKey OfFlow(int64_t id) { return {FlowId{id}, FlowKind::kFlow}; }
inline FlowKey ByValue(int64_t id) { return {FlowId{id}, FlowKind::kValue}; }

}  // namespace nowcalls::web

namespace nowcalls::testing {

using web::FlowLook;
using web::Snapshot;

inline constexpr int64_t kNowS = 1'700'000'000;

struct Calls {
  uint64_t granted = 0;
  uint64_t refused = 0;
  uint64_t ended = 0;
  uint64_t held_ms = 0;
  uint64_t now_calls = 0;
};

// A flow to which `calls` came within a second.
inline FlowLook LookAt(int64_t flow_id, const std::string& name_space, const std::string& resource,
                       const Calls& calls) {
  FlowLook look;
  look.row.flow_id = flow_id;
  look.row.name_space = name_space;
  look.row.resource = resource;
  look.row.now_calls = calls.now_calls;
  look.came = {calls.granted, calls.refused, calls.ended, calls.held_ms};
  look.granted_per_s = static_cast<double>(calls.granted);
  look.refused_per_s = static_cast<double>(calls.refused);
  look.ended_per_s = static_cast<double>(calls.ended);
  return look;
}

// The same of a rule by value.
inline FlowLook LookAtValues(int64_t flow_id, const std::string& name_space,
                             const std::string& resource, const Calls& calls) {
  FlowLook look = LookAt(flow_id, name_space, resource, calls);
  look.row.kind = FlowKindName(FlowKind::kValue);
  return look;
}

// A look `s` seconds behind kNowS.
inline Snapshot SnapshotAt(int64_t s, std::vector<FlowLook> flows) {
  Snapshot snapshot;
  snapshot.number = static_cast<uint64_t>(s) + 1;
  snapshot.unix_ms = (kNowS + s) * 1000 + 7;
  snapshot.flows = std::move(flows);
  nlohmann::ordered_json info;
  info["limits"]["namespace_qps_max"] = 30'000;
  snapshot.info = std::make_shared<const nlohmann::ordered_json>(std::move(info));
  return snapshot;
}

// Of a response that is whole or comes in pieces.
inline std::string WholeBody(const web::Response& response) {
  std::string body = response.body;
  if (!response.stream_ends) return body;
  for (auto piece = response.stream(); piece && !piece->empty(); piece = response.stream()) {
    body += *piece;
  }
  return body;
}

// Keeps what is watched.
class FixedSource : public web::SnapshotSource {
 public:
  explicit FixedSource(Snapshot of) : snapshot(std::make_shared<Snapshot>(std::move(of))) {
    points.Add(*snapshot);
  }

  web::SnapshotPtr latest() const override { return snapshot; }
  const web::Series& series() const override { return points; }
  void WatchFlow(const FlowKey& flow) override { flows.insert(flow); }
  void WatchSession(uint64_t session) override { session_details.insert(session); }
  void WatchSessions() override { sessions = true; }
  void WatchHistory() override { history = true; }
  void WatchRules() override { rules = true; }

  const std::shared_ptr<Snapshot> snapshot;
  web::Series points;
  std::set<FlowKey> flows;
  std::set<uint64_t> session_details;
  bool sessions = false;
  bool history = false;
  bool rules = false;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_WEB_SNAPSHOTS_H_
