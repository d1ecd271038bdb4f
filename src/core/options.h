// CoreOptions: what the configuration says to the core.
//
// Thread: any; plain values.
#ifndef NOWCALLS_CORE_OPTIONS_H_
#define NOWCALLS_CORE_OPTIONS_H_

#include <array>
#include <cstdint>
#include <memory>

#include "base/limits.h"
#include "core/log_ends.h"
#include "core/mass_expiry_guard.h"
#include "core/namespace_guards.h"
#include "nowcalls/expire_strategy.h"

namespace nowcalls::core {

struct CoreOptions {
  Limits limits;
  // Namespaces with a guard of their own instead of namespace_qps_max.
  NamespaceGuards::ByName namespace_guards{};
  // Keys the permutation from fences to token ids; the ledger's format record holds it.
  std::array<uint64_t, 2> token_id_key{};
  // How long the sessions and tokens from before a restart are spared, at least. Longer than a
  // Sentinel client's reconnect delay (2 s), with room for a supervisor's restart.
  int64_t restart_grace_ms = 10'000;
  // When sessions that go offline are a mass, and how many times clientOfflineTime a mass is waited
  // for.
  MassExpiryOptions mass_expiry;
  double mass_expiry_factor = 5;
  // Null: DefaultExpireStrategy with the three settings above.
  std::shared_ptr<ExpireStrategy> expire_strategy;
  // A token may be held for resourceTimeout times this without a keep: 2 .. 3.
  double resource_timeout_factor = 2.0;
  // Sentinel's executeRate, executeCount and executeDuration of the expiry task.
  int64_t sweep_interval_ms = 100;
  uint32_t sweep_keys_max = 1000;
  int64_t sweep_budget_us = 20'000;
  // Waiters that one call grants, or looks at in vain, when it has made room for more. The others
  // follow at OnTime.
  uint32_t grants_per_call_max = 1000;
  // Whose ended tokens are logged; nobody's as it is.
  LogEnds log_ends;

  NamespaceGuards guards() const { return {limits.namespace_qps_max, namespace_guards}; }
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_OPTIONS_H_
