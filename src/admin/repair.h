// repair: salvages a refused ledger into a new one.
//
// Thread: one. The damaged ledger is never written.
#ifndef NOWCALLS_ADMIN_REPAIR_H_
#define NOWCALLS_ADMIN_REPAIR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ledger/codec.h"
#include "ledger/entities.h"
#include "ledger/history_entry.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/status.h"
#include "store/ledger_source.h"

namespace nowcalls::admin {

// As found; damage in sentences.
struct ReadEntities : ledger::EntityVisitor {
  std::optional<ledger::Format> format;
  std::optional<ledger::ClockMark> mark;
  std::optional<ledger::Seal> seal;
  std::vector<ledger::NamespaceEntry> namespaces;
  std::vector<ledger::RuleEntry> rules;
  std::vector<ledger::Session> sessions;
  std::vector<ledger::HistoryEntry> history;
  std::vector<ledger::RateBucket> rates;
  std::vector<ledger::Token> tokens;
  std::vector<std::string> damage;

  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }
  Status OnBadRecord(const ledger::BadRecord& record) override;
  Status OnUnreadable(ledger::Family family, Status what) override;

 private:
  Status On(const ledger::Format& read);
  Status On(const ledger::ClockMark& read);
  Status On(const ledger::Seal& read);
  Status On(const ledger::Watermark& /*watermark*/) { return {}; }
  Status On(const ledger::NamespaceEntry& entry);
  Status On(const ledger::RuleEntry& rule);
  Status On(const ledger::Session& session);
  Status On(const ledger::HistoryBlock& block);
  Status On(const ledger::RateBucket& bucket);
  Status On(const ledger::Token& token);
};

struct SalvagedEntities {
  ledger::Format format;
  ledger::ClockMark mark;
  uint64_t next_fence = 1;
  std::vector<ledger::NamespaceEntry> namespaces;
  std::map<FlowKey, ledger::RuleEntry> rules;
  std::map<uint64_t, ledger::Session> sessions;  // By number.
  std::vector<ledger::HistoryEntry> history;
  std::map<ledger::RateKey, ledger::RateBucket> rates;
  std::map<uint64_t, ledger::Token> tokens;  // By fence.
  std::vector<std::string> changes;          // What was left out or made up, in sentences.

  uint64_t now_calls() const;
  uint64_t fence_sum() const;  // As in ledger::Seal.
};

// `now`: the machine's clocks.
SalvagedEntities SalvageEntities(const ReadEntities& read, const ClockSample& now);

// A new ledger in `data_dir`, closed. kIoError.
Status WriteSalvaged(const SalvagedEntities& salvaged, const std::string& data_dir);

struct RepairSummary {
  std::vector<std::string> lost;     // Files, byte ranges, batches.
  std::vector<std::string> changes;  // Of SalvagedEntities.
  std::optional<ledger::Seal> seal;  // The last that was found.
  uint64_t newest_batch = 0;         // See store::SalvageReport.
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
  uint64_t fence_sum = 0;
  uint64_t sessions = 0;
  uint64_t rules = 0;
  uint64_t history = 0;
  uint64_t next_fence = 0;
};

// kAlreadyExists: `to` exists. kInvalidArgument: `to` lies within `data_dir`, another ledger or a
// backup, or `data_dir` is none; messages name the option. kNotFound: no ledger. kCorruption:
// nothing is readable. kFailedPrecondition: another format version. kIoError: also when a server
// has it.
Result<RepairSummary> Repair(const std::string& data_dir, const std::string& to);

// Lines for people; `to` as they named it.
std::string RepairText(const RepairSummary& summary, const std::string& to);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_REPAIR_H_
