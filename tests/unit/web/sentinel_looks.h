// Snapshots for the tests of Sentinel's dashboard.
//
// Thread: any.
#ifndef NOWCALLS_UNIT_WEB_SENTINEL_LOOKS_H_
#define NOWCALLS_UNIT_WEB_SENTINEL_LOOKS_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "web/series.h"
#include "web/snapshot.h"

namespace nowcalls::web {

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

}  // namespace nowcalls::web

#endif  // NOWCALLS_UNIT_WEB_SENTINEL_LOOKS_H_
