// CoreHarness: a Core over a MemoryStore under a clock that only the test moves.
//
// Thread: one at a time. Every call commits its records at once unless `auto_commit` is off; what
// is not committed is lost by Restart, as it is by a crash. A violated expectation of the harness
// itself ends the test case.
#ifndef NOWCALLS_SUPPORT_CORE_HARNESS_H_
#define NOWCALLS_SUPPORT_CORE_HARNESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/books.h"
#include "core/core.h"
#include "core/expiry/mass_expiry.h"
#include "core/rule_book.h"
#include "core/rules/rule_set.h"
#include "core/tables/wait_queues.h"
#include "ledger/commit_batch.h"
#include "store/memory_store.h"

namespace nowcalls::testing {

// The fields of a rule that concurrency control looks at.
struct RuleOptions {
  int64_t flow = 0;
  double count = 10;
  bool avg_local = false;
  int64_t resource_timeout_ms = 2000;
  int64_t client_offline_ms = 2000;
  int64_t max_hold_ms = 0;
  int64_t max_per_client = 0;
  double max_per_client_percent = 0;
  bool shadow = false;
  int timeout_strategy = 0;
  int refuse_strategy = 0;
  int64_t max_queueing_ms = 500;
  std::optional<core::ParamRule> param{};
  std::string resource{};  // Empty: "r" and the flow.
};
// Flow 0 has no flowId. Of a rule with a parameter without its items.
std::string RulesJson(const std::vector<RuleOptions>& rules);
// Gives the rule, of such JSON, the parameter of `options`.
void AddParam(const RuleOptions& options, core::Rule* rule);
// The rules of one namespace from their JSON, as rules_load does it.
Status ReplaceRules(core::Core* core, const core::Step& step, std::string_view name_space,
                    std::string_view json);

// "OK 1/2": the status, the word of the limit, nowCalls and level. No answer yet: "waits".
std::string AnswerText(const std::optional<core::AcquireAnswer>& answer);

// Defaults, but that no step of a sweep ends early on a slow machine.
core::CoreOptions HarnessOptions();

// What a ledger holds, as text and as structs.
struct LedgerContent {
  std::vector<ledger::Token> tokens;  // In ascending order of fence.
  std::vector<ledger::Session> sessions;
  std::vector<ledger::NamespaceEntry> namespaces;
  std::vector<ledger::RuleEntry> rules;
  std::vector<ledger::HistoryEntry> history;  // In ascending order of sequence.
  std::vector<size_t> history_blocks;         // How many of them each row has.
  std::vector<ledger::RateBucket> rates;
  std::optional<ledger::Seal> seal;
  int64_t watermark_ms = 0;
  std::optional<ledger::ClockMark> clock;
};
LedgerContent ReadLedger(store::LedgerSource* store);

// Loads everything in `store` into a new core. The core is usable only if the status is ok.
// `format_version`: what to take the ledger for; 0: what it says.
Status LoadCore(store::LedgerSource* store, Instant now, core::Core* core,
                uint32_t format_version = 0);

// What a core keeps of the ends of tokens, oldest first.
std::vector<ledger::HistoryEntry> HistoryOf(const core::Core& core);

// The live tokens, one line each in the order of issue: all that must survive a restart.
std::string TokensText(const core::Core& core);
std::string TokensText(const LedgerContent& content);
// nowCalls of each flow that has some, and of each session that holds tokens.
std::string NowCallsText(const core::Core& core);

// Counts everything anew from the list of live tokens and says which book disagrees (invariant 2).
// Empty when none does.
std::string FindWrongBook(const core::Core& core);

class CoreHarness {
 public:
  static constexpr int64_t kStartMs = 1'000'000;

  explicit CoreHarness(const core::CoreOptions& options = HarnessOptions());

  core::Core& core() { return *core_; }
  store::MemoryStore& store() { return store_; }
  Instant now() const { return now_; }
  core::Step step() { return {now_, &batch_}; }
  ledger::CommitBatch& batch() { return batch_; }
  bool auto_commit = true;

  // Replaces the rules of a namespace; they must be valid.
  void Rules(const std::vector<RuleOptions>& rules, std::string_view name_space = "app");
  // The same with rules of any kind.
  void InstallRules(const std::vector<core::Rule>& rules, std::string_view name_space = "app");
  core::SessionSlot Hello(std::string_view client_id, std::string_view name_space = "app");
  core::SessionSlot HelloUnnamed(std::string_view peer, std::string_view name_space = "app");
  // One connection of the session, with the waiters of this owner; by default there are none.
  void Goodbye(core::SessionSlot session, uint32_t owner = UINT32_MAX,
               std::string_view display_id = "@127.0.0.1:1");

  // One that does not wait.
  core::AcquireAnswer Acquire(core::SessionSlot session, int64_t flow, int64_t count = 1);
  // Nothing: it waits. `owner` stands for a connection.
  std::optional<core::AcquireAnswer> Ask(core::SessionSlot session,
                                         const core::AcquireRequest& request, uint32_t tag,
                                         uint32_t owner = 0);
  std::optional<core::AcquireAllAnswer> AskAll(core::SessionSlot session,
                                               const core::AcquireAllRequest& request, uint32_t tag,
                                               uint32_t owner = 0);
  TokenStatus Cancel(core::SessionSlot session, uint64_t request_id);
  void DropWaiters(uint32_t owner);
  // "1 OK, 2 BLOCKED queue_timeout": the answers that came late, by tag. "3 BLOCKED level of 7": of
  // an acquire_all, with the flow that refuses.
  std::string LateText();
  // A token that must be granted.
  TokenId Take(core::SessionSlot session, int64_t flow, int64_t count = 1);
  TokenStatus Release(core::SessionSlot session, TokenId token);
  core::KeepAnswer Keep(core::SessionSlot session, TokenId token);
  TokenStatus Reclaim(TokenId token);

  // Time passes and nothing is done about it.
  void Sleep(int64_t duration_ms) { now_ = now_ + duration_ms; }
  // Time passes as for a server: what becomes due is done at its moment.
  void Pass(int64_t duration_ms);
  // Whatever is due now: timers, and sweeps if one is due.
  void DoDue();
  // One step of a sweep, if one is due. How many keys it found.
  std::optional<size_t> ScanStep();

  void Commit();
  // A crash: the open batch is lost. The server is ready again `down_ms` later.
  void Restart(int64_t down_ms = 0, uint32_t format_version = 0);

  // Of all flows of the id.
  int64_t NowCalls(int64_t flow) const;
  uint64_t Ended(int64_t flow, EndReason reason) const;
  bool IsLive(TokenId token) const;
  std::string NoticesText();

 private:
  void AfterCall();

  core::CoreOptions options_;
  store::MemoryStore store_;
  Instant now_{kStartMs};
  ledger::CommitBatch batch_;
  std::unique_ptr<core::Core> core_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_CORE_HARNESS_H_
