// CoreOptions: the core's configuration.
//
// Thread: any.
#ifndef NOWCALLS_CORE_OPTIONS_H_
#define NOWCALLS_CORE_OPTIONS_H_

#include <array>
#include <cstdint>
#include <memory>

#include "base/limits.h"
#include "core/log_ends.h"
#include "core/tables/mass_expiry_guard.h"
#include "core/tables/namespace_guards.h"
#include "nowcalls/expire_strategy.h"

namespace nowcalls::core {

struct CoreOptions {
  Limits limits;
  // Overrides of namespace_qps_max.
  NamespaceGuards::ByName namespace_guards{};
  // Of the ledger's format record.
  std::array<uint64_t, 2> token_id_key{};
  // Of this writer, in each batch; 0 while a ledger has but one.
  uint64_t term = 0;
  // Sessions and tokens from before a restart are spared this long at least: Sentinel's clients
  // reconnect after 2 s.
  int64_t restart_grace_ms = 10'000;
  MassExpiryOptions mass_expiry;
  double mass_expiry_factor = 5;
  // Null: DefaultExpireStrategy with the three settings above.
  std::shared_ptr<ExpireStrategy> expire_strategy;
  // Holds without a keep last resourceTimeout times this: 2 .. 3.
  double resource_timeout_factor = 2.0;
  // Sentinel's executeRate, executeCount and executeDuration of the expiry task.
  int64_t sweep_interval_ms = 100;
  uint32_t sweep_keys_max = 1000;
  int64_t sweep_budget_us = 20'000;
  // Waiters looked at in a call; others at OnTime.
  uint32_t grants_per_call_max = 1000;
  // None by default.
  LogEnds log_ends;

  NamespaceGuards guards() const { return {limits.namespace_qps_max, namespace_guards}; }
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_OPTIONS_H_
