// Store: the seam between the engine and whatever stores the ledger.
//
// A store never interprets records beyond ledger::ApplyRecords.
//
// Thread: Commit, Sync, CheckPlace and FreeBytes are called by one thread at a time, the writer,
// whichever thread that is at the moment (server/commit_thread.h). Scan is called by one other
// thread, also at the same time. Load runs before either.
#ifndef NOWCALLS_STORE_STORE_H_
#define NOWCALLS_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ledger/codec.h"
#include "ledger/commit_batch.h"
#include "ledger/entities.h"
#include "ledger/families.h"
#include "ledger/history_entry.h"
#include "ledger/scan.h"
#include "nowcalls/status.h"

namespace nowcalls::store {

// A record that does not decode, or one that is missing.
struct BadRecord {
  ledger::Family family;
  std::string key;  // In hexadecimal, of a long one the beginning; empty: there is no record.
  Status why;

  // The failure with its place: "tokens_short, key 0000...: token value: fence is 0".
  Status WithPlace() const {
    if (key.empty()) return why;
    return why.WithContext(std::string(FamilyName(family)) + ", key " + key);
  }
};

// Receives everything in a ledger, in the order of these members; tokens in any order, unless the
// store says otherwise. A call that returns a failure ends the load with it.
class LedgerVisitor {
 public:
  virtual ~LedgerVisitor() = default;
  virtual Status OnFormat(const ledger::Format& format) = 0;
  virtual Status OnClock(const ledger::ClockMark& mark) = 0;
  virtual Status OnSeal(const ledger::Seal& seal) = 0;
  virtual Status OnWatermark(int64_t deadline_ms) = 0;
  // Before the rules of the namespace. The default ignores it.
  virtual Status OnNamespace(const ledger::NamespaceEntry& /*entry*/) { return {}; }
  virtual Status OnRule(const ledger::RuleEntry& rule) = 0;
  virtual Status OnSession(const ledger::Session& session) = 0;
  // A block, by ascending sequence. The default ignores it: most readers want what is live.
  virtual Status OnHistory(const ledger::HistoryBlock& /*block*/) { return {}; }
  // The default ignores it, likewise.
  virtual Status OnRate(const ledger::RateBucket& /*bucket*/) { return {}; }
  virtual Status OnToken(const ledger::Token& token) = 0;
  // The default ends the walk with it. A verifier may count it and return Ok to go on.
  virtual Status OnBadRecord(const BadRecord& record) { return record.WithPlace(); }
  // A column family that cannot be read on, because of the damage `what`. Its records from there on
  // are not shown. The default ends the walk with it; after Ok the next family follows.
  virtual Status OnUnreadable(ledger::Family /*family*/, Status what) { return what; }
};

class Store {
 public:
  virtual ~Store() = default;

  // Shows the whole ledger to `visitor`, the tokens from the watermark on. Clock, seal and
  // watermark are absent from a ledger that was formatted and never written to.
  virtual Status Load(LedgerVisitor* visitor) = 0;

  // Applies a sealed batch atomically and, as the durability asks, makes it durable. After a
  // failure the store accepts no further batch: whether this one survives is unknown, and only
  // recovery may decide.
  virtual Status Commit(const ledger::CommitBatch& batch) = 0;

  // The same. It may call `durable`, if that is not empty, once on this thread. From then on the
  // next Load shows the batch, whatever happens, and the store does not look at `batch` any more.
  virtual Status CommitTelling(const ledger::CommitBatch& batch,
                               const std::function<void()>& /*durable*/) {
    return Commit(batch);
  }

  // Makes durable what Commit has applied without syncing. Does nothing when each Commit syncs.
  virtual Status Sync() = 0;

  // Whether batches that were answered may be missing from what Load shows, although the machine
  // was not booted since. They were not synced; a disk may lose such batches without a boot, and
  // the logs need not show it.
  virtual bool MayLackBatches() const { return false; }

  // Whether Commit would still write to the ledger that was loaded. The writer, about once a second
  // while there is nothing to commit.
  virtual Status CheckPlace() { return {}; }

  // Free bytes of the ledger's file system; nothing if it does not tell. The writer, or before
  // there is one.
  virtual std::optional<uint64_t> FreeBytes() { return {}; }
  // The same of its free inodes, of which each file takes one.
  virtual std::optional<uint64_t> FreeFiles() { return {}; }

  // One step of a sweep over committed records.
  virtual void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_STORE_H_
