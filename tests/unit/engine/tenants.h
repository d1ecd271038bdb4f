// Two tenants of one server, and a request of each method about what one of them has.
#ifndef NOWCALLS_UNIT_ENGINE_TENANTS_H_
#define NOWCALLS_UNIT_ENGINE_TENANTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "support/engine_harness.h"
#include "wire/method.h"
#include "wire/sentinel/frames.h"

namespace nowcalls::testing {

struct Subject {
  std::string name_space;
  int64_t flow = 0;
  uint64_t token = 0;  // Of the flow.
};

// Flow 1 of "shop" and flow 2 of "bank", each with two calls, one of them held by a client of the
// namespace, and one that waits. Principals, all administrators: "ann" of "shop", "bob" of "bank",
// "root" of all.
struct Tenants {
  Tenants();

  // The token of "bank" lives, with its waiter.
  bool StillThere();
  std::string Load(std::string_view name_space, const std::vector<RuleOptions>& rules);

  EngineHarness h;
  engine::ConnectionId root = 0;
  engine::ConnectionId anns = 0;  // Its client "anns-worker".
  engine::ConnectionId bobs = 0;
  Subject own{"shop", 1};
  Subject other{"bank", 2};
  Subject nowhere{"empty", 9, 77};
};

// Empty: a method that is not known here.
std::string RequestAbout(wire::Method method, const Subject& subject);
// Whether RequestAbout names the flow, or the namespace.
bool NamesFlow(wire::Method method);
bool NamesNamespace(wire::Method method);

std::string SentinelRequest(wire::sentinel::RequestType type, std::string_view name_space,
                            int64_t flow, uint64_t token);
// Of the one answer.
TokenStatus TakeSentinelStatus(EngineHarness* h, engine::ConnectionId id);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_UNIT_ENGINE_TENANTS_H_
