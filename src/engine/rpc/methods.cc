#include "engine/rpc/methods.h"

#include <array>
#include <cstddef>

#include "engine/rpc/handlers.h"
#include "engine/turn_budget.h"

namespace nowcalls::engine::rpc {
namespace {

using Id = wire::Method;

constexpr Cost kCall{};
constexpr Cost kHelloCost{.base = 8};
constexpr Cost kRow{.base = 8, .shows = true};
constexpr Cost kListing{.base = 100, .per_kib = 4, .work = true, .shows = true};
// Has a filter.
constexpr Cost kSearch{.base = 200, .per_kib = 4, .work = true, .shows = true};
// Rules are made JSON anew, which takes some 10 us each.
constexpr Cost kRuleListing{.base = 100, .per_kib = 48, .work = true, .shows = true};
constexpr Cost kSummary{.base = 200, .per_kib = 4, .work = true};
constexpr Cost kMassReclaim{.base = 100, .per_kib = 32, .work = true};
constexpr Cost kWholeTurn{.base = kWorkPerTurn, .work = true};
// All waiters of a flow are answered; threads and files are begun.
constexpr Cost kPartOfTurn{.base = kWorkPerTurn / 8, .work = true};
// All keys of the server are looked at.
constexpr Cost kSearchOfAll{.base = kWorkPerTurn, .per_kib = 4, .work = true, .shows = true};

// In the order of wire::Method.
constexpr auto kMethods = std::to_array<MethodRow>({
    {Id::kHello, kHelloCost, Role::kEveryone, Changes::kSession, Hello},
    {Id::kPing, kCall, Role::kEveryone, Changes::kNothing, Ping},
    {Id::kAcquire, kCall, Role::kEveryone, Changes::kTokens, Acquire},
    {Id::kRelease, kCall, Role::kEveryone, Changes::kTokens, Release, /*as_notification=*/true},
    {Id::kKeep, kCall, Role::kEveryone, Changes::kTokens, Keep, /*as_notification=*/true},
    {Id::kRulesList, kRuleListing, Role::kEveryone, Changes::kNothing, RulesList},
    {Id::kRulesLoad, kWholeTurn, Role::kAdministrator, Changes::kRules, RulesLoad},
    {Id::kFlow, kRow, Role::kEveryone, Changes::kNothing, Flow},
    {Id::kFlows, kListing, Role::kEveryone, Changes::kNothing, Flows},
    {Id::kTokens, kSearch, Role::kEveryone, Changes::kNothing, Tokens},
    {Id::kSessions, kListing, Role::kEveryone, Changes::kNothing, Sessions},
    {Id::kInfo, kSummary, Role::kEveryone, Changes::kNothing, Info},
    {Id::kReclaim, kCall, Role::kAdministrator, Changes::kTokens, Reclaim},
    {Id::kCancel, kCall, Role::kEveryone, Changes::kTokens, Cancel},
    {Id::kHistory, kListing, Role::kEveryone, Changes::kNothing, History},
    {Id::kReclaimClient, kMassReclaim, Role::kAdministrator, Changes::kTokens, ReclaimClient},
    {Id::kReclaimFlow, kMassReclaim, Role::kAdministrator, Changes::kTokens, ReclaimFlow},
    {Id::kPurge, kMassReclaim, Role::kAdministrator, Changes::kTokens, Purge},
    {Id::kDrain, kPartOfTurn, Role::kAdministrator, Changes::kRules, Drain},
    {Id::kNamespaces, kListing, Role::kEveryone, Changes::kNothing, Namespaces},
    {Id::kBackup, kPartOfTurn, Role::kAdministrator, Changes::kFiles, Backup},
    {Id::kRequest, kCall, Role::kEveryone, Changes::kNothing, Request},
    {Id::kRequestParam, kCall, Role::kEveryone, Changes::kNothing, RequestParam},
    {Id::kParams, kSearchOfAll, Role::kEveryone, Changes::kNothing, Params},
    {Id::kWaiters, kSearch, Role::kEveryone, Changes::kNothing, Waiters},
    {Id::kAcquireAll, kCall, Role::kEveryone, Changes::kTokens, AcquireAll},
    {Id::kReclaimNamespace, kMassReclaim, Role::kAdministrator, Changes::kTokens, ReclaimNamespace},
    {Id::kDrainNamespace, kPartOfTurn, Role::kAdministrator, Changes::kRules, DrainNamespace},
});

// kUnknown has no row.
constexpr bool EachHasItsRow() {
  if (kMethods.size() != wire::kMethodCount - 1) return false;
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if (static_cast<size_t>(kMethods[i].id) != i + 1) return false;
  }
  return true;
}
static_assert(EachHasItsRow(), "a row a method, in the order of wire::Method");

}  // namespace

const MethodRow* FindMethod(wire::Method id) {
  return id == Id::kUnknown ? nullptr : &kMethods[static_cast<size_t>(id) - 1];
}

std::span<const MethodRow> AllMethods() { return kMethods; }

}  // namespace nowcalls::engine::rpc
