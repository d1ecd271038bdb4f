#include "recovery/recovery.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/time.h"
#include "core/books.h"
#include "core/loading.h"
#include "ledger/fence_line.h"

namespace nowcalls::recovery {
namespace {

class Loader : public store::LedgerVisitor {
 public:
  explicit Loader(const core::CoreOptions& options) : options_(options) {}

  Status OnFormat(const ledger::Format& format) override {
    options_.token_id_key = format.token_id_key;
    core_ = std::make_unique<core::Core>(options_);
    format_version_ = format.version;
    core_->loading().SetFormat(format);
    return Status::Ok();
  }
  Status OnClock(const ledger::ClockMark& mark) override {
    mark_ = mark;
    return Status::Ok();
  }
  Status OnSeal(const ledger::Seal& seal) override {
    seal_ = seal;
    core_->loading().ExpectSeal(seal);
    return Status::Ok();
  }
  Status OnWatermark(int64_t /*deadline_ms*/) override { return Status::Ok(); }
  Status OnNamespace(const ledger::NamespaceEntry& entry) override {
    rule_sources_.emplace(entry.name_space, entry.source);
    return core_->loading().LoadNamespace(entry);
  }
  Status OnRule(const ledger::RuleEntry& rule) override {
    ++rules_;
    return core_->loading().LoadRule(rule);
  }
  Status OnSession(const ledger::Session& session) override {
    ++sessions_;
    return core_->loading().LoadSession(session);
  }
  Status OnHistory(const ledger::HistoryBlock& block) override {
    return core_->loading().LoadHistory(block);
  }
  Status OnRate(const ledger::RateBucket& bucket) override {
    return core_->loading().LoadRate(bucket);
  }
  Status OnToken(const ledger::Token& token) override {
    ++tokens_;
    return core_->loading().LoadToken(token);
  }

  Result<RecoveredLedger> Finish(bool may_lack_batches,
                                 const std::function<Result<ClockSample>()>& sample_clocks) {
    if (core_ == nullptr) return Status::Corruption("the ledger has no format record");
    if (seal_.has_value() != mark_.has_value()) {
      return Status::Corruption("the ledger has a clock without a seal, or a seal without a clock");
    }
    if (mark_.has_value()) mark_ = core_->loading().Believed(*mark_);
    std::string future = core_->loading().times().Warning();
    NOWCALLS_RETURN_IF_ERROR(core_->FinishLoad(seal_));
    const Result<ClockSample> sample = sample_clocks();
    if (!sample.ok()) return sample.status();
    std::optional<ledger::RecoveredTime> time;
    // The clock of a new ledger begins with the wall clock.
    Instant now{std::max<int64_t>(0, sample->wall_ms)};
    if (mark_.has_value()) {
      time = ledger::RecoverTime(*mark_, Instant{seal_->ledger_ms}, *sample);
      now = time->now;
    }
    core_->Begin(now, NextFence(*sample, time, may_lack_batches));
    return RecoveredLedger{std::move(core_), ledger::LedgerClock(now, sample->boottime_ms),
                           sample->boot_id,  time,
                           rules_,           sessions_,
                           tokens_,          std::move(rule_sources_),
                           format_version_,  std::move(future)};
  }

 private:
  // The first that is certain not to have been given out.
  uint64_t NextFence(const ClockSample& sample, const std::optional<ledger::RecoveredTime>& time,
                     bool may_lack_batches) const {
    const uint64_t next = core_->books().next_fence();
    if (!time.has_value()) return ledger::FenceLine(sample.wall_ms);
    if (!time->same_boot) return ledger::FenceAfterBoot(next, sample.wall_ms);
    if (!may_lack_batches) return next;
    return ledger::FenceAfterLoss(next, sample.boottime_ms - mark_->machine.boottime_ms);
  }

  core::CoreOptions options_;
  std::unique_ptr<core::Core> core_;
  std::optional<ledger::ClockMark> mark_;
  std::optional<ledger::Seal> seal_;
  uint32_t format_version_ = 0;
  uint64_t rules_ = 0;
  uint64_t sessions_ = 0;
  uint64_t tokens_ = 0;
  std::map<std::string, std::string> rule_sources_;
};

}  // namespace

Result<RecoveredLedger> Recover(store::Log* log, store::Tables* tables,
                                const core::CoreOptions& options,
                                const std::function<Result<ClockSample>()>& sample_clocks) {
  NOWCALLS_RETURN_IF_ERROR(
      log->Read(tables->applied() + 1,
                [tables](const ledger::SealedBatch& batch) { return tables->Apply(batch); }));
  Loader loader(options);
  NOWCALLS_RETURN_IF_ERROR(tables->Load(&loader));
  return loader.Finish(log->MayLackBatches(), sample_clocks);
}

}  // namespace nowcalls::recovery
