// Books: the tables that all parts of the core share. Only Books begins, moves and ends tokens.
//
// Thread: loop. Lanes that get room go into the wake list. Keeps invariants 2, also for keys and
// sessions, 5 and 6 (src/README.md).
#ifndef NOWCALLS_CORE_BOOKS_H_
#define NOWCALLS_CORE_BOOKS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/answers.h"
#include "core/options.h"
#include "core/rates/rate_table.h"
#include "core/step.h"
#include "core/tables/deadline_counter.h"
#include "core/tables/flow_table.h"
#include "core/tables/history.h"
#include "core/tables/request_ids.h"
#include "core/tables/session_table.h"
#include "core/tables/slot.h"
#include "core/tables/token_end.h"
#include "core/tables/token_ids.h"
#include "core/tables/token_table.h"
#include "core/tables/wake_list.h"
#include "ledger/entities.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

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
  // Without effect: token_id_key, term, history_max, bounds of cancels and values, the expire
  // strategy and its times.
  void SetOptions(const CoreOptions& options);
  const FlowTable& flows() const { return flows_; }
  const SessionTable& sessions() const { return sessions_; }
  const TokenTable& tokens() const { return tokens_; }
  const History& history() const { return history_; }
  const RequestIds& request_ids() const { return request_ids_; }
  const RateTable& rates() const { return rates_; }
  const DeadlineCounter& deadlines() const { return deadlines_; }
  const TokenIds& ids() const { return ids_; }
  TokenId IdOf(const TokenEntry& entry) const { return ids_.FromFence(Fence{entry.fence}); }

  // --- Sums. ---
  uint64_t next_fence() const { return next_fence_; }
  // Of the last seal.
  uint64_t batch_number() const { return batch_number_; }
  uint64_t live_count_sum() const { return live_count_sum_; }
  // The least given out since the server started.
  uint64_t first_fence() const { return first_fence_; }

  // Steps of walks over tables, some 60 ns each. Every walk adds its own; the engine charges the
  // message.
  uint64_t& looks() const { return looks_; }

  // --- Sessions. ---
  // Without connections. Without a client id it shows the display id.
  SessionSlot OpenSession(const Step& step, const HelloRequest& request);
  // REQUIRES: no connections, no tokens, no check scheduled.
  void CloseSession(const Step& step, SessionSlot slot);

  // --- Tokens. ---
  TokenSlot IssueToken(const Step& step, const NewToken& wanted);
  // Erases a flow with a removed rule after its last token.
  void EndToken(const Step& step, TokenSlot slot, const TokenEnd& end);
  void MoveToken(const Step& step, TokenSlot slot, int64_t deadline_ms, int64_t hold_ms);
  void CountIn(TokenSlot slot);

  // --- Flows. ---
  // The rule is set; is about to be erased or moved. A namespace's rules of one id share a record.
  void RecordRule(const Step& step, const Flow& flow) const;
  void RecordRuleRemoved(const Step& step, const Flow& flow) const;
  // With its rule. REQUIRES: no tokens.
  void EraseFlow(const Step& step, FlowSlot slot);
  // For caps for clients. Call when the rule changes.
  void TrackSessions(Flow* flow);

  void Resume(const ledger::Seal& last);
  // Fences go on at `next` at least.
  void SkipFences(uint64_t next);
  // Of the next batch.
  ledger::Seal NextSeal(int64_t now_ms);

 protected:
  FlowTable flows_;
  SessionTable sessions_;
  TokenTable tokens_;
  History history_;
  RequestIds request_ids_;
  WakeList wake_list_;
  RateTable rates_;

 private:
  void CountOutOfKey(KeySlot slot, uint32_t count);

  CoreOptions options_;
  const TokenIds ids_;
  DeadlineCounter deadlines_;
  uint64_t next_fence_ = 1;
  uint64_t first_fence_ = 1;
  uint64_t batch_number_ = 0;
  uint64_t live_count_sum_ = 0;
  uint64_t live_fence_sum_ = 0;
  mutable uint64_t looks_ = 0;  // Of those who only read, too.
};

// The owner gives each part the tables that it changes.
class OpenBooks : public Books {
 public:
  using Books::Books;

  FlowTable* flows() { return &flows_; }
  SessionTable* sessions() { return &sessions_; }
  TokenTable* tokens() { return &tokens_; }
  History* history() { return &history_; }
  RequestIds* request_ids() { return &request_ids_; }
  WakeList* wake_list() { return &wake_list_; }
  RateTable* rates() { return &rates_; }
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_BOOKS_H_
