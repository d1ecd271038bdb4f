// CommitBatch: the self-contained redo records of one group commit.
//
// Thread: one at a time.
#ifndef NOWCALLS_LEDGER_COMMIT_BATCH_H_
#define NOWCALLS_LEDGER_COMMIT_BATCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ledger/entities.h"
#include "ledger/history_entry.h"
#include "ledger/record_types.h"
#include "ledger/sealed_batch.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

struct EntityKind;

class CommitBatch {
 public:
  // `param`: the token's, in place of Token::param; null: none.
  void TokenIssued(const Token& token, const Param* param);
  void TokenIssued(const Token& token);  // With Token::param.
  // Moves a token to `after.key`. No record if the keys are equal. REQUIRES: the same token id.
  void TokenKept(const TokenKey& before, const Token& after, const Param* param);
  void TokenKept(const TokenKey& before, const Token& after);  // With Token::param.
  void TokenEnded(const TokenKey& key, EndReason reason);
  void SessionOpened(const Session& session);
  void SessionClosed(SessionId id);
  // `by_value`: the other rule of this namespace and flow id; `rule` is then that of the flow. Set
  // both together.
  void RuleSet(const RuleEntry& rule, const RuleEntry* by_value = nullptr);
  void RuleRemoved(std::string_view name_space, FlowId flow);
  void HistoryAdded(std::span<const HistoryEntry> block);  // REQUIRES: a HistoryBlock.
  void HistoryDropped(uint64_t first_sequence);            // Of the block.
  void NamespaceSet(const NamespaceEntry& entry);
  void NamespaceRemoved(std::string_view name_space);
  void RateSet(const RateBucket& bucket);
  void RateDropped(const RateKey& key);
  void ClockMarked(const ClockMark& mark);
  void FormatSet(const Format& format);
  // Every live deadline is >= `deadline_ms`.
  void WatermarkRaised(int64_t deadline_ms);

  // Nothing may be appended after it. `term`: of this writer of the ledger. REQUIRES: !sealed().
  void Sealed(const Seal& seal, uint64_t term = 0);

  bool empty() const { return records_ == 0; }
  bool sealed() const { return number_ != 0; }
  uint64_t number() const { return number_; }  // Of the seal; 0 before.
  uint64_t term() const { return term_; }
  uint32_t records() const { return records_; }
  std::string_view bytes() const {
    const std::string_view all = bytes_;
    return all.substr(kSealedBatchHeaderBytes);
  }
  // Header and records. REQUIRES: sealed().
  std::string_view sealed_bytes() const;

  // Due tokens decided in this batch.
  uint32_t due() const { return due_; }
  void CountDue() { ++due_; }

  // Keeps the buffer, unless it is huge.
  void Clear();

 private:
  void Put(const EntityKind& kind, std::string_view key, std::string_view value);
  void Delete(const EntityKind& kind, std::string_view key);
  void Begin(RecordType type);
  void Append(std::string_view record);

  std::string bytes_ = std::string(kSealedBatchHeaderBytes, '\0');  // Room for the header first.
  uint32_t records_ = 0;
  uint32_t due_ = 0;
  uint64_t number_ = 0;
  uint64_t term_ = 0;
};

// The seal behind its records. kCorruption: there is none.
Result<Seal> SealOf(const SealedBatch& batch);

// Receives one call for each key that records change.
class KeyValueSink {
 public:
  virtual ~KeyValueSink() = default;
  virtual void Put(Family family, std::string_view key, std::string_view value) = 0;
  // Of families that are put once.
  virtual void SingleDelete(Family family, std::string_view key) = 0;
  // Of others.
  virtual void Delete(Family family, std::string_view key) = 0;
};

// Applies one batch's records in order; a seal must be the last. kCorruption for other bytes:
// discard the sink, which saw a part. Views last for the call.
Status ApplyRecords(std::string_view records, KeyValueSink* sink);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_COMMIT_BATCH_H_
