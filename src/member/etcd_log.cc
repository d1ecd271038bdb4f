#include "member/etcd_log.h"

#include <chrono>
#include <utility>

#include "base/check.h"

namespace nowcalls::member {
namespace {

constexpr int64_t kSlotsMax = 16;
constexpr int64_t kPauseMs = 50;

}  // namespace

EtcdLog::EtcdLog(cluster::Etcd* etcd, cluster::Keys keys, uint64_t bytes_max, Trouble trouble)
    : etcd_(etcd), bytes_max_(bytes_max), txns_(std::move(keys)), trouble_(std::move(trouble)) {}

void EtcdLog::Hold(const cluster::HeldClaim& held) {
  held_ = held;
  trim_plan_.emplace(bytes_max_, view_.first, view_.end());
  last_ = view_.last;
  trimmed_ = 0;
  synced_ = 0;
  const std::lock_guard lock(mutex_);
  gave_up_ = false;
}

void EtcdLog::GiveUp() {
  {
    const std::lock_guard lock(mutex_);
    gave_up_ = true;
  }
  given_up_.notify_all();
}

Status EtcdLog::Trim(uint64_t number) {
  synced_ = number;
  return {};
}

Status EtcdLog::Deposed(uint64_t number) const {
  return Status::FailedPrecondition("batch " + std::to_string(number) + " of term " +
                                    std::to_string(held_->claim.term) +
                                    " is not this member's to append any more");
}

Status EtcdLog::Append(const ledger::SealedBatch& batch) {
  NOWCALLS_CHECK(held_.has_value());
  for (const cluster::Txn& part : txns_.Parts(*held_, batch)) {
    const Result<cluster::TxnReply> put = CommitAtLast(part);
    if (!put.ok()) return put.status();
    if (!put->succeeded) return Deposed(batch.number());
  }
  const uint64_t plan = trim_plan_->To(synced_);
  const uint64_t trim = plan > trimmed_ ? plan : 0;
  const Result<cluster::TxnReply> reply = CommitAtLast(txns_.Append(*held_, batch, last_, trim));
  if (!reply.ok()) return reply.status();
  if (txns_.FateOf(*reply, *held_, batch) != cluster::Fate::kDone) return Deposed(batch.number());
  last_ = batch.number();
  if (trim > 0) trimmed_ = trim;
  trim_plan_->Appended(batch.number(), batch.bytes().size());
  bytes_ = trim_plan_->bytes();
  return {};
}

// kFailedPrecondition: GiveUp.
Result<cluster::TxnReply> EtcdLog::CommitAtLast(const cluster::Txn& txn) {
  for (bool troubled = false;; troubled = true) {
    Result<cluster::TxnReply> reply = etcd_->Commit(txn);
    if (reply.ok()) {
      if (troubled) trouble_(Status::Ok());
      return reply;
    }
    trouble_(reply.status());
    if (!Pause()) {
      return Status::FailedPrecondition("this member's claim is over, and etcd had not answered: " +
                                        reply.status().message());
    }
  }
}

// False: GiveUp.
bool EtcdLog::Pause() {
  std::unique_lock lock(mutex_);
  return !given_up_.wait_for(lock, std::chrono::milliseconds(kPauseMs),
                             [this] { return gave_up_; });
}

Status EtcdLog::Read(uint64_t from, const BatchSink& sink) {
  for (;;) {
    const Result<cluster::TxnReply> reply = etcd_->Commit(txns_.Read(from, kSlotsMax));
    if (!reply.ok()) return reply.status();
    Result<cluster::LogView> view = txns_.ViewOf(*reply);
    if (!view.ok()) return view.status();
    view_ = *std::move(view);
    if (admit_) NOWCALLS_RETURN_IF_ERROR(admit_(view_));
    const cluster::ClaimedLog::SlotRun slots = txns_.SlotsOf(*reply, from);
    if (slots.trimmed) {
      return Status::FailedPrecondition("the log in etcd has forgotten batch " +
                                        std::to_string(from));
    }
    if (slots.batches.empty()) return {};
    for (const std::string& slot : slots.batches) {
      NOWCALLS_RETURN_IF_ERROR(ReadSlot(from, slot, sink));
      ++from;
    }
  }
}

Status EtcdLog::ReadSlot(uint64_t number, const std::string& slot, const BatchSink& sink) {
  std::string whole;
  const bool in_parts = cluster::ClaimedLog::PartsIn(slot) > 0;
  if (in_parts) {
    const Result<cluster::TxnReply> reply = etcd_->Commit(txns_.ReadParts(number, slot));
    if (!reply.ok()) return reply.status();
    std::optional<std::string> joined = txns_.BatchOf(*reply);
    if (!joined) {
      return Status::FailedPrecondition("the log in etcd has forgotten batch " +
                                        std::to_string(number));
    }
    whole = *std::move(joined);
  }
  const auto batch = ledger::SealedBatch::Parse(in_parts ? whole : slot);
  if (!batch.ok()) return batch.status().WithContext("slot " + std::to_string(number) + " in etcd");
  return sink(*batch);
}

}  // namespace nowcalls::member
