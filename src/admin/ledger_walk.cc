#include "admin/ledger_walk.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/time.h"
#include "ledger/clock.h"
#include "ledger/entity_table.h"

namespace nowcalls::admin {
namespace {

// How far a walk goes at least that wants records of the family.
LedgerWalk::Until UntilOf(ledger::Family family) {
  switch (family) {
    case ledger::Family::kMeta: return LedgerWalk::Until::kSeal;
    case ledger::Family::kRules: return LedgerWalk::Until::kRules;
    case ledger::Family::kSessions: return LedgerWalk::Until::kSessions;
    case ledger::Family::kHistory: return LedgerWalk::Until::kHistory;
    default: return LedgerWalk::Until::kEnd;
  }
}

}  // namespace

Status LedgerWalk::Run(store::LedgerSource* store) {
  // A visitor ends a walk by a failure; the one of Stop is none.
  const Status status = store->Load(this);
  return stopped_ ? Status::Ok() : status;
}

Status LedgerWalk::damage() const {
  if (damaged_ == 0) return {};
  const std::string places =
      damaged_ == 1 ? "" : std::to_string(damaged_) + " places are damaged, the first: ";
  return Status::Corruption(places + first_damage_.message() +
                            "; `nowcalls-admin verify` lists all that is wrong");
}

void LedgerWalk::AddDamage(Status what) {
  if (damaged_++ == 0) first_damage_ = std::move(what);
}

int64_t LedgerWalk::NowMs(const ClockSample& machine) const {
  // The seal's time is the latest in the ledger, since the seal is written behind the tokens of its
  // batch. A mark later than that is not believed.
  const Instant floor{seal_.has_value() ? seal_->ledger_ms : 0};
  if (!mark_.has_value()) return floor.ms;
  ledger::ClockMark mark = *mark_;
  if (seal_.has_value()) mark.ledger_ms = std::min(mark.ledger_ms, floor.ms);
  return ledger::RecoverTime(mark, floor, machine).now.ms;
}

const ledger::Session* LedgerWalk::FindSession(SessionId id) const {
  const auto found = sessions_.find(id.value);
  return found == sessions_.end() ? nullptr : &found->second;
}

Status LedgerWalk::OnEntity(const ledger::Entity& entity) {
  // Families come in a fixed order: the first record behind what is wanted ends the walk.
  if (UntilOf(ledger::KindOf(entity).family) > until_) return Stop();
  return std::visit([this](const auto* found) { return On(*found); }, entity);
}

Status LedgerWalk::On(const ledger::Format& format) {
  format_version_ = format.version;
  return {};
}

Status LedgerWalk::On(const ledger::ClockMark& mark) {
  mark_ = mark;
  return {};
}

Status LedgerWalk::On(const ledger::Seal& seal) {
  seal_ = seal;
  progress_->set_total(seal.live_tokens);
  return {};
}

Status LedgerWalk::On(const ledger::NamespaceEntry& entry) {
  namespaces_.push_back(entry);
  return {};
}

Status LedgerWalk::On(const ledger::RuleEntry& rule) {
  rules_.push_back(rule);
  return {};
}

Status LedgerWalk::On(const ledger::Session& session) {
  sessions_[session.id.value] = session;
  return {};
}

Status LedgerWalk::On(const ledger::HistoryBlock& block) {
  // Nobody asked for it, but the walk goes on to the tokens.
  if (!history_) return {};
  for (const ledger::HistoryEntry& entry : block) NOWCALLS_RETURN_IF_ERROR(history_(entry));
  return {};
}

Status LedgerWalk::On(const ledger::Token& token) {
  progress_->Count();
  return tokens_ ? tokens_(token) : Status::Ok();
}

Status LedgerWalk::OnBadRecord(const ledger::BadRecord& record) {
  return StepOver(record.family, record.WithPlace());
}

Status LedgerWalk::OnUnreadable(ledger::Family family, Status what) {
  return StepOver(family, std::move(what));
}

// Damage beyond what was asked for is none of the caller's.
Status LedgerWalk::StepOver(ledger::Family family, Status what) {
  if (UntilOf(family) > until_) return Stop();
  AddDamage(std::move(what));
  // Sums do not need the history, so its damage alone does not spoil them (whole).
  if (family == ledger::Family::kHistory && !history_) ++damaged_history_;
  return {};
}

// A failure is how a visitor ends a walk; Run knows that this one is none.
Status LedgerWalk::Stop() {
  stopped_ = true;
  return Status::FailedPrecondition("the rest of the ledger is not wanted");
}

}  // namespace nowcalls::admin
