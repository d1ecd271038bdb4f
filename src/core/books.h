// Books: the tables that all parts of the core share, and the only ways to change a token.
//
// Thread: loop. Each part reads the tables as it likes, but only Books lets a token begin, move and
// end: it writes the record, and changes every sum that the token is in. So these hold here:
//   invariant 2: nowCalls of a flow, a key and a session is the sum of count over its live tokens;
//   invariant 5: a token ends once, with a reason;
//   invariant 6: fences grow, and neither a fence nor an id is given out twice.
// Books decides nothing: whether a token may begin is Admission's to say, and when it ends the
// other parts'. Books reaches no other part; the lanes that have room go into the wake list.
#ifndef NOWCALLS_CORE_BOOKS_H_
#define NOWCALLS_CORE_BOOKS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/answers.h"
#include "core/deadline_counter.h"
#include "core/flow_table.h"
#include "core/history.h"
#include "core/options.h"
#include "core/rate_table.h"
#include "core/request_ids.h"
#include "core/session_table.h"
#include "core/slot.h"
#include "core/step.h"
#include "core/token_end.h"
#include "core/token_ids.h"
#include "core/token_table.h"
#include "core/wake_list.h"
#include "ledger/entities.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

// A token that is to begin.
struct NewToken {
  SessionSlot session_slot;
  LaneRef lane;
  uint32_t count = 1;
  uint64_t request_id = 0;  // 0: none.
  int64_t hold_ms = 0;      // 0, or more than the rule gives: what the rule gives.
};

class Books {
 public:
  explicit Books(const CoreOptions& options);

  // --- Tables. ---
  const CoreOptions& options() const { return options_; }
  // The options of now. What tables and strategies were made of (token_id_key, history_max, the
  // bounds of cancels and values, expire_strategy and its times) stays as it was.
  void SetOptions(const CoreOptions& options);
  FlowTable& flows() { return flows_; }
  const FlowTable& flows() const { return flows_; }
  SessionTable& sessions() { return sessions_; }
  const SessionTable& sessions() const { return sessions_; }
  TokenTable& tokens() { return tokens_; }
  const TokenTable& tokens() const { return tokens_; }
  History& history() { return history_; }
  const History& history() const { return history_; }
  RequestIds& request_ids() { return request_ids_; }
  const RequestIds& request_ids() const { return request_ids_; }
  WakeList& wake_list() { return wake_list_; }
  RateTable& rates() { return rates_; }
  const RateTable& rates() const { return rates_; }
  const DeadlineCounter& deadlines() const { return deadlines_; }
  const TokenIds& ids() const { return ids_; }
  TokenId IdOf(const TokenEntry& entry) const { return ids_.FromFence(Fence{entry.fence}); }

  // --- Sums. ---
  uint64_t next_fence() const { return next_fence_; }
  // The last batch that was sealed.
  uint64_t batch_number() const { return batch_number_; }
  uint64_t live_count_sum() const { return live_count_sum_; }
  // Of all flows since the server started, also of flows that are gone.
  const FlowCounters& totals() const { return totals_; }
  bool IsFromBeforeRestart(const TokenEntry& entry) const { return entry.fence < first_fence_; }

  // --- Work. ---
  // Entries of tables that calls have looked at, beyond the few that every call looks at, since the
  // server started. Whatever walks a table adds its steps here, also where it only reads, and the
  // engine charges them to the message that caused them. A look takes some 60 ns.
  uint64_t& looks() const { return looks_; }

  // --- Sessions. ---
  // A session without connections. Without a client id it is shown as the display id.
  SessionSlot OpenSession(const Step& step, const HelloRequest& request);
  // REQUIRES: no connections, no tokens, no check scheduled.
  void CloseSession(const Step& step, SessionSlot slot);

  // --- Tokens. ---
  TokenSlot IssueToken(const Step& step, const NewToken& wanted);
  // The flow is erased with its last token if its rule was removed. Whether the session is still
  // needed is Absence's to say.
  void EndToken(const Step& step, TokenSlot slot, const TokenEnd& end);
  void MoveToken(const Step& step, TokenSlot slot, int64_t deadline_ms, int64_t hold_ms);
  // Adds a live token to the sums of its flow, its key, its session and the ledger, and to the
  // deadlines.
  void CountIn(TokenSlot slot);

  // --- Flows. ---
  // Of a flow whose rule is set, or is about to be erased or moved. The two rules of a flow id in
  // a namespace share a record.
  void RecordRule(const Step& step, const Flow& flow) const;
  void RecordRuleRemoved(const Step& step, const Flow& flow) const;
  // With its rule. REQUIRES: no tokens.
  void EraseFlow(const Step& step, FlowSlot slot);
  // Counts what each session holds of the flow while its rule has a cap for clients; to be called
  // when the rule changes.
  void TrackSessions(Flow* flow);
  // Counts a refusal, and answers it.
  AcquireAnswer Refuse(const LaneRef& lane, TokenStatus status, RefusedBy limit);
  // Changes the flow's counters, and the totals likewise.
  template <typename Change>
  void Count(Flow* flow, Change change) {
    change(&flow->counters);
    change(&totals_);
  }

  // --- Seals. ---
  // Goes on behind the last batch of a ledger.
  void Resume(const ledger::Seal& last);
  // Gives no fence below `next` out, nor its id.
  void SkipFences(uint64_t next);
  // The seal of the next batch.
  ledger::Seal NextSeal(int64_t now_ms);

 private:
  void CountOutOfKey(KeySlot slot, uint32_t count);

  CoreOptions options_;
  const TokenIds ids_;
  FlowTable flows_;
  SessionTable sessions_;
  TokenTable tokens_;
  DeadlineCounter deadlines_;
  History history_;
  RequestIds request_ids_;
  WakeList wake_list_;
  RateTable rates_;

  uint64_t next_fence_ = 1;
  uint64_t first_fence_ = 1;  // The least that was given out since the server started.
  uint64_t batch_number_ = 0;
  uint64_t live_count_sum_ = 0;
  uint64_t live_fence_sum_ = 0;
  FlowCounters totals_;
  mutable uint64_t looks_ = 0;  // Of those who only read, too.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_BOOKS_H_
