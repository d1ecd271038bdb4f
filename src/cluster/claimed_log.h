// ClaimedLog: the transactions by which members share a log in etcd.
//
// Thread: any; pure. It makes transactions and reads their replies; whoever sends them may send one
// again when its answer was lost. README.md has the reasons.
//
// Order of a takeover: Look until no writer has a claim; Claim; Read to the end of the log, and
// Settle, until that is done; then Append, one batch at a time.
#ifndef NOWCALLS_CLUSTER_CLAIMED_LOG_H_
#define NOWCALLS_CLUSTER_CLAIMED_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/etcd.h"
#include "cluster/keys.h"
#include "cluster/records.h"
#include "ledger/sealed_batch.h"
#include "nowcalls/status.h"

namespace nowcalls::cluster {

// As of one moment.
struct LogView {
  std::optional<Lineage> lineage{};  // None: no member was ever here.
  std::string lineage_value{};
  std::optional<Claim> writer{};
  // Of the writer that began to serve last, while it has not given its claim back.
  std::optional<Claim> leader{};
  uint64_t first = 0;  // Slot; 0: there is none.
  uint64_t last = 0;   // Likewise.

  // The last batch that the log ever took; 0: none.
  uint64_t end() const;
};

// A claim that etcd has taken.
struct HeldClaim {
  Claim claim;
  int64_t revision = 0;  // In which the key was created.
};

// What etcd says of a batch or of a claim.
enum class Fate {
  kDone,
  kDeposed,  // Another has the claim, or nobody: this writer writes no more.
  kBehind,   // Of Settle: the log has a batch that was not read yet.
};

class ClaimedLog {
 public:
  // Of one value: etcd takes 1.5 MiB a request.
  static constexpr size_t kValueBytesMax = 1024 * 1024;

  explicit ClaimedLog(Keys keys) : keys_(std::move(keys)) {}

  Txn Look() const;
  // kCorruption: a key has a value that nowcalls did not write.
  Result<LogView> ViewOf(const TxnReply& reply) const;

  // At most `slots_max` batches from number `from` on, which is not 0.
  Txn Read(uint64_t from, int64_t slots_max) const;
  struct SlotRun {
    std::vector<std::string> batches;  // Slots' bytes (PartsIn), the first of them of `from`.
    bool trimmed = false;              // The log has forgotten `from`.
  };
  SlotRun SlotsOf(const TxnReply& reply, uint64_t from) const;

  // `seen` has no writer. `own`: of the cluster that this member begins if there is none; its base
  // is the last batch of the member's tables. `claim` has a term behind that of `seen`.
  Txn Claim(const LogView& seen, const cluster::Claim& claim, const Lineage& own,
            int64_t lease) const;
  // nullopt: another was first, or `seen` is old.
  std::optional<HeldClaim> ClaimOf(const TxnReply& reply, const cluster::Claim& claim) const;

  // Proves that the claim holds and that batch `last`, up to which the member has read, is the
  // log's last one.
  Txn Settle(const HeldClaim& held, uint64_t last) const;
  // kCorruption: the log ends before batch `last`, or lacks the next one and has others: etcd has
  // lost what it had. kFailedPrecondition: the log has forgotten the next one.
  Result<Fate> SettledOf(const TxnReply& reply, const HeldClaim& held, uint64_t last) const;

  // The parts of a batch that is too long for one value, each to be put before Append. Empty: it is
  // not.
  std::vector<Txn> Parts(const HeldClaim& held, const ledger::SealedBatch& batch) const;
  // Of a slot's bytes from Read; 0: they are the whole batch.
  static size_t PartsIn(std::string_view slot);
  // The batch behind such bytes of slot `number`.
  Txn ReadParts(uint64_t number, const std::string& slot) const;
  // nullopt: the log has forgotten it since.
  std::optional<std::string> BatchOf(const TxnReply& reply) const;

  // Puts `batch` behind slot `last`, and drops slots up to `trim`, before `last`; 0: none. Fails
  // also where etcd has lost slot `last`.
  Txn Append(const HeldClaim& held, const ledger::SealedBatch& batch, uint64_t last,
             uint64_t trim) const;
  Fate FateOf(const TxnReply& reply, const HeldClaim& held, const ledger::SealedBatch& batch) const;

  // Gives the claim back at once.
  Txn Resign(const HeldClaim& held) const;

  const Keys& keys() const { return keys_; }

 private:
  std::vector<Compare> IsWriter(const HeldClaim& held) const;
  Operation SlotsFrom(uint64_t from) const;

  Keys keys_;
};

}  // namespace nowcalls::cluster

#endif  // NOWCALLS_CLUSTER_CLAIMED_LOG_H_
