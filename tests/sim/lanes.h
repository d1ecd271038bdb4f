// Lanes: what the simulation counts as a flow: a flow, or one value of the parameter of its rule.
//
// A value has a number of its own, as if it were a flow. So the oracle holds it to the same
// invariants: its level is never exceeded, and its waiters have an order of their own.
//
// Thread: any; pure.
#ifndef NOWCALLS_SIM_LANES_H_
#define NOWCALLS_SIM_LANES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::sim {

inline constexpr int64_t kKeysMax = 4;  // Of a rule.

// Flows of the simulation are below it.
inline constexpr int64_t kFirstKeyLane = 1'000'000;

constexpr bool IsKeyLane(int64_t lane) { return lane >= kFirstKeyLane; }
constexpr int64_t LaneOf(int64_t flow, int64_t key) {
  return kFirstKeyLane + flow * kKeysMax + key;
}
constexpr int64_t FlowOfLane(int64_t lane) {
  return IsKeyLane(lane) ? (lane - kFirstKeyLane) / kKeysMax : lane;
}
// The text of the key, and the lane of it. REQUIRES: IsKeyLane; a text of the simulation.
inline std::string KeyOfLane(int64_t lane) {
  return "key-" + std::to_string((lane - kFirstKeyLane) % kKeysMax);
}
inline int64_t LaneOfText(int64_t flow, std::string_view text) {
  return LaneOf(flow, text.back() - '0');
}
// The flow itself, and all its keys.
inline std::vector<int64_t> LanesOf(int64_t flow) {
  std::vector<int64_t> lanes = {flow};
  for (int64_t key = 0; key < kKeysMax; ++key) lanes.push_back(LaneOf(flow, key));
  return lanes;
}

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_LANES_H_
