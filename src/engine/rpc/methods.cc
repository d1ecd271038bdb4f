#include "engine/rpc/methods.h"

#include <array>
#include <cstddef>

#include "engine/rpc/handlers.h"
#include "engine/turn_budget.h"

namespace nowcalls::engine::rpc {
namespace {

using Id = wire::Method;
using access::Role;
using access::Scope;

constexpr Cost kCall{};
constexpr Cost kHelloCost{.base = 8};
// A digest, and a search of all secrets that takes as long whatever is right. Guesses stand in the
// line for work, and take no turn of others.
constexpr Cost kIdentifyCost{.base = 64, .work = true};
constexpr Cost kRow{.base = 8, .shows = true};
constexpr Cost kMembers{.base = 8};
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
    {Id::kHello, kHelloCost, {Role::kClient, Scope::kNamespace}, Hello},
    {Id::kPing, kCall, {Role::kAnybody, Scope::kServer}, Ping},
    {Id::kAcquire, kCall, {Role::kClient, Scope::kFlow}, Acquire},
    {Id::kRelease, kCall, {Role::kClient, Scope::kToken}, Release, /*as_notification=*/true},
    {Id::kKeep, kCall, {Role::kClient, Scope::kToken}, Keep, /*as_notification=*/true},
    {Id::kRulesList, kRuleListing, {Role::kObserver, Scope::kNamespace}, RulesList},
    {Id::kRulesLoad, kWholeTurn, {Role::kAdministrator, Scope::kNamespace}, RulesLoad},
    {Id::kFlow, kRow, {Role::kObserver, Scope::kFlow}, Flow},
    {Id::kFlows, kListing, {Role::kObserver, Scope::kNamespace}, Flows},
    {Id::kTokens, kSearch, {Role::kObserver, Scope::kNamespace}, Tokens},
    {Id::kSessions, kListing, {Role::kObserver, Scope::kNamespace}, Sessions},
    {Id::kInfo, kSummary, {Role::kObserver, Scope::kServer}, Info},
    {Id::kReclaim, kCall, {Role::kAdministrator, Scope::kToken}, Reclaim},
    {Id::kCancel, kCall, {Role::kClient, Scope::kNamespace}, Cancel},
    {Id::kHistory, kListing, {Role::kObserver, Scope::kNamespace}, History},
    {Id::kReclaimClient, kMassReclaim, {Role::kAdministrator, Scope::kNamespace}, ReclaimClient},
    {Id::kReclaimFlow, kMassReclaim, {Role::kAdministrator, Scope::kFlow}, ReclaimFlow},
    {Id::kPurge, kMassReclaim, {Role::kAdministrator, Scope::kFlow}, Purge},
    {Id::kDrain, kPartOfTurn, {Role::kAdministrator, Scope::kFlow}, Drain},
    {Id::kNamespaces, kListing, {Role::kObserver, Scope::kServer}, Namespaces},
    {Id::kBackup, kPartOfTurn, {Role::kAdministrator, Scope::kServer}, Backup},
    {Id::kRequest, kCall, {Role::kClient, Scope::kFlow}, Request},
    {Id::kRequestParam, kCall, {Role::kClient, Scope::kFlow}, RequestParam},
    {Id::kParams, kSearchOfAll, {Role::kObserver, Scope::kFlow}, Params},
    {Id::kWaiters, kSearch, {Role::kObserver, Scope::kNamespace}, Waiters},
    {Id::kAcquireAll, kCall, {Role::kClient, Scope::kFlow}, AcquireAll},
    {Id::kReclaimNamespace,
     kMassReclaim,
     {Role::kAdministrator, Scope::kNamespace},
     ReclaimNamespace},
    {Id::kDrainNamespace, kPartOfTurn, {Role::kAdministrator, Scope::kNamespace}, DrainNamespace},
    {Id::kIdentify, kIdentifyCost, {Role::kAnybody, Scope::kServer}, Identify},
    {Id::kCopy, kPartOfTurn, {Role::kAdministrator, Scope::kServer}, Copy},
    {Id::kCopyPiece, kPartOfTurn, {Role::kAdministrator, Scope::kServer}, CopyPiece},
    {Id::kCluster, kMembers, {Role::kObserver, Scope::kServer}, Cluster},
    {Id::kHandover, kPartOfTurn, {Role::kAdministrator, Scope::kServer}, Handover},
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
