#include "recovery/recovery.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/time.h"
#include "core/books.h"
#include "core/loading.h"
#include "ledger/fence_line.h"
#include "recovery/replay.h"

namespace nowcalls::recovery {
namespace {

class Loader : public ledger::EntityVisitor {
 public:
  explicit Loader(const core::CoreOptions& options) : options_(options) {}

  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }

  Result<RecoveredLedger> Finish(const store::Log& log, const Clocks& clocks) {
    if (core_ == nullptr) return Status::Corruption("the ledger has no format record");
    // The first batch writes both, so one alone is damage.
    if (seal_.has_value() != mark_.has_value()) {
      return Status::Corruption("the ledger has a clock without a seal, or a seal without a clock");
    }
    // A mark later than the last batch is not believed: the time of the batch counts.
    if (mark_.has_value()) mark_ = core_->loading().Believed(*mark_);
    std::string future = core_->loading().times().Warning();
    // Proof: the entities that were loaded add up to the seal.
    NOWCALLS_RETURN_IF_ERROR(core_->FinishLoad(seal_));
    const Result<ClockSample> sample = clocks.sample();
    if (!sample.ok()) return sample.status();
    std::optional<ledger::RecoveredTime> time;
    // A new ledger has no mark: its time begins with the wall clock.
    Instant now{std::max<int64_t>(0, sample->wall_ms)};
    // A served ledger goes on from its mark, never before its last seal.
    if (mark_.has_value()) {
      time = ledger::RecoverTime(*mark_, Instant{seal_->ledger_ms}, *sample, clocks.observed);
      now = time->now;
    }
    core_->Begin(now, NextFence(*sample, time, log));
    return RecoveredLedger{std::move(core_), ledger::LedgerClock(now, sample->boottime_ms),
                           sample->boot_id,  time,
                           rules_,           sessions_,
                           tokens_,          std::move(rule_sources_),
                           format_,          seal_ ? seal_->ledger_ms : 0,
                           std::move(future)};
  }

 private:
  Status On(const ledger::Format& format) {
    options_.token_id_key = format.token_id_key;
    core_ = std::make_unique<core::Core>(options_);
    format_ = format;
    core_->loading().SetFormat(format);
    return Status::Ok();
  }
  Status On(const ledger::ClockMark& mark) {
    mark_ = mark;
    return Status::Ok();
  }
  Status On(const ledger::Seal& seal) {
    seal_ = seal;
    core_->loading().ExpectSeal(seal);
    return Status::Ok();
  }
  Status On(const ledger::Watermark& /*watermark*/) { return Status::Ok(); }
  Status On(const ledger::NamespaceEntry& entry) {
    rule_sources_.emplace(entry.name_space, entry.source);
    return core_->loading().LoadNamespace(entry);
  }
  Status On(const ledger::RuleEntry& rule) {
    ++rules_;
    return core_->loading().LoadRule(rule);
  }
  Status On(const ledger::Session& session) {
    ++sessions_;
    return core_->loading().LoadSession(session);
  }
  Status On(const ledger::HistoryBlock& block) { return core_->loading().LoadHistory(block); }
  Status On(const ledger::RateBucket& bucket) { return core_->loading().LoadRate(bucket); }
  Status On(const ledger::Token& token) {
    ++tokens_;
    return core_->loading().LoadToken(token);
  }

  // The first fence that is certain not to have been given out.
  uint64_t NextFence(const ClockSample& sample, const std::optional<ledger::RecoveredTime>& time,
                     const store::Log& log) const {
    const uint64_t next = core_->books().next_fence();
    // A new ledger begins on the line, above every ledger that may have been here before.
    if (!time.has_value()) return ledger::FenceLine(sample.wall_ms);
    if (log.OutlivesMachine()) return next;
    // Another boot: the last batches may be lost, so skip what they may have given out.
    if (!time->same_boot) return ledger::FenceAfterBoot(next, sample.wall_ms);
    // Same boot: a disk may drop batches that were never synced, but none older than the mark.
    if (!log.MayLackBatches()) return next;
    return ledger::FenceAfterLoss(next, sample.boottime_ms - mark_->machine.boottime_ms);
  }

  core::CoreOptions options_;
  std::unique_ptr<core::Core> core_;
  std::optional<ledger::ClockMark> mark_;
  std::optional<ledger::Seal> seal_;
  ledger::Format format_;
  uint64_t rules_ = 0;
  uint64_t sessions_ = 0;
  uint64_t tokens_ = 0;
  std::map<std::string, std::string> rule_sources_;
};

}  // namespace

// Batches that the log has and the tables lack are applied first, so the proof covers them.
Result<RecoveredLedger> Recover(store::Log* log, store::Tables* tables,
                                const core::CoreOptions& options, const Clocks& clocks) {
  // Step 1: apply the batches that the tables lack.
  const Result<bool> replayed = Replay(log, tables).Apply(SIZE_MAX);
  if (!replayed.ok()) return replayed.status();
  // Step 2: the tables are whole; load every family in the order of ledger::Entity.
  Loader loader(options);
  NOWCALLS_RETURN_IF_ERROR(tables->Load(&loader));
  return loader.Finish(*log, clocks);
}

}  // namespace nowcalls::recovery
