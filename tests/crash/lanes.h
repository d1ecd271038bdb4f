// Lanes: what the crash loop counts as a flow: a flow, or one value of the rule by value of
// kKeyedFlow.
//
// A value has a number of its own, as if it were a flow, so the checker holds it to the same
// invariants: the level of each value is never exceeded. kKeyedFlow has a rule of the flow, too.
//
// Thread: any; pure.
#ifndef NOWCALLS_CRASH_LANES_H_
#define NOWCALLS_CRASH_LANES_H_

#include <cstdint>
#include <string>

namespace nowcalls::crash {

inline constexpr int64_t kKeyedFlow = 7;
inline constexpr int64_t kKeys = 3;
inline constexpr int64_t kFirstKeyLane = 700'001;
// The rule by value of kKeyedFlow, where rules are told by numbers.
inline constexpr int64_t kKeyedRule = 700'000;

constexpr bool IsKeyLane(int64_t lane) {
  return lane >= kFirstKeyLane && lane < kFirstKeyLane + kKeys;
}
constexpr int64_t FlowOfLane(int64_t lane) { return IsKeyLane(lane) ? kKeyedFlow : lane; }

constexpr int64_t RuleOfLane(int64_t lane) { return IsKeyLane(lane) ? kKeyedRule : lane; }

inline std::string KeyOfLane(int64_t lane) { return "key-" + std::to_string(lane - kFirstKeyLane); }
// The reverse. REQUIRES: a key of the loop.
inline int64_t LaneOfKey(const std::string& key) {
  return kFirstKeyLane + std::stoll(key.substr(key.find('-') + 1));
}

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_LANES_H_
