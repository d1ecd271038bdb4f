// LedgerSource: whatever shows a ledger: the tables of a server, a tool's reader, a test's.
//
// Thread: one.
#ifndef NOWCALLS_STORE_LEDGER_SOURCE_H_
#define NOWCALLS_STORE_LEDGER_SOURCE_H_

#include <cstdint>
#include <string>

#include "ledger/codec.h"
#include "ledger/entities.h"
#include "ledger/families.h"
#include "ledger/history_entry.h"
#include "nowcalls/status.h"

namespace nowcalls::store {

// A record that does not decode, or is missing.
struct BadRecord {
  ledger::Family family;
  std::string key;  // In hexadecimal, of a long one the beginning; empty: there is no record.
  Status why;

  // With its place: "tokens_short, key 0000...: token value: fence is 0".
  Status WithPlace() const {
    if (key.empty()) return why;
    return why.WithContext(std::string(FamilyName(family)) + ", key " + key);
  }
};

// Receives a ledger in the order of these members; tokens in any order. A failure ends the load
// with it.
class LedgerVisitor {
 public:
  virtual ~LedgerVisitor() = default;
  virtual Status OnFormat(const ledger::Format& format) = 0;
  virtual Status OnClock(const ledger::ClockMark& mark) = 0;
  virtual Status OnSeal(const ledger::Seal& seal) = 0;
  virtual Status OnWatermark(int64_t deadline_ms) = 0;
  // Precedes the rules of the namespace. Ignored by default, as OnHistory and OnRate.
  virtual Status OnNamespace(const ledger::NamespaceEntry& /*entry*/) { return {}; }
  virtual Status OnRule(const ledger::RuleEntry& rule) = 0;
  virtual Status OnSession(const ledger::Session& session) = 0;
  // A block; blocks come by ascending sequence.
  virtual Status OnHistory(const ledger::HistoryBlock& /*block*/) { return {}; }
  virtual Status OnRate(const ledger::RateBucket& /*bucket*/) { return {}; }
  virtual Status OnToken(const ledger::Token& token) = 0;
  // Ends the walk by default; a verifier may return Ok to go on.
  virtual Status OnBadRecord(const BadRecord& record) { return record.WithPlace(); }
  // `family` is damaged; its later records are not shown. Ends the walk by default; after Ok the
  // next family follows.
  virtual Status OnUnreadable(ledger::Family /*family*/, Status what) { return what; }
};

class LedgerSource {
 public:
  virtual ~LedgerSource() = default;

  // Shows the whole ledger to `visitor`. Clock, seal and watermark are absent from a ledger that
  // was formatted and never written to. Tables show the tokens from the watermark on.
  virtual Status Load(LedgerVisitor* visitor) = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LEDGER_SOURCE_H_
