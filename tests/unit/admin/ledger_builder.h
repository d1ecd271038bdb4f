// LedgerBuilder: a ledger in a MemoryStore, sound unless a test says otherwise.
//
// Thread: any. The seal is made of what was added; change `seal` before Build to plant a defect.
#ifndef NOWCALLS_UNIT_ADMIN_LEDGER_BUILDER_H_
#define NOWCALLS_UNIT_ADMIN_LEDGER_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "core/rules/rule_json.h"
#include "core/tables/token_ids.h"
#include "ledger/commit_batch.h"
#include "store/memory_store.h"

namespace nowcalls::admin {

inline constexpr int64_t kSealedMs = 1'000'000;  // When the sample ledger was last written to.

inline core::Rule GlobalRule(int64_t flow_id, double count) {
  core::Rule rule;
  rule.resource = "resource-" + std::to_string(flow_id);
  rule.count = count;
  rule.flow_id = FlowId(flow_id);
  rule.threshold_type = core::ThresholdType::kGlobal;
  return rule;
}

template <typename T>
Status Show(const T& entity, ledger::EntityVisitor* visitor) {
  return visitor->OnEntity(&entity);
}

class LedgerBuilder {
 public:
  LedgerBuilder() {
    format_.token_id_key = {11, 22};
    mark.ledger_ms = kSealedMs - 500;
    mark.machine = {.boottime_ms = 50'000, .wall_ms = 7'000'000, .boot_id = {1}};
    seal.batch_number = 7;
    seal.ledger_ms = kSealedMs;
    seal.next_fence = 1000;
  }

  LedgerBuilder& Rule(std::string_view name_space, const core::Rule& rule,
                      ledger::RuleState state = ledger::RuleState::kActive) {
    batch_.RuleSet({std::string(name_space), rule.flow_id, state, core::RuleToJson(rule)});
    return *this;
  }
  // Both rules of a flow id in a namespace.
  LedgerBuilder& TwoRules(std::string_view name_space, const core::Rule& of_flow,
                          const core::Rule& by_value) {
    const auto entry = [&](const core::Rule& rule) {
      return ledger::RuleEntry{std::string(name_space), rule.flow_id, ledger::RuleState::kActive,
                               core::RuleToJson(rule)};
    };
    const ledger::RuleEntry second = entry(by_value);
    batch_.RuleSet(entry(of_flow), &second);
    return *this;
  }
  LedgerBuilder& FormatVersion(uint32_t version) {
    format_.version = version;
    return *this;
  }
  LedgerBuilder& RuleText(std::string_view name_space, int64_t flow_id, std::string_view json) {
    batch_.RuleSet(
        {std::string(name_space), FlowId(flow_id), ledger::RuleState::kActive, std::string(json)});
    return *this;
  }
  LedgerBuilder& Namespace(std::string_view name_space, std::string_view source) {
    batch_.NamespaceSet({std::string(name_space), std::string(source)});
    return *this;
  }
  LedgerBuilder& Session(uint64_t id, std::string_view name_space, std::string_view client_id,
                         ledger::SessionKind kind = ledger::SessionKind::kNamed) {
    batch_.SessionOpened({.id = SessionId(id),
                          .kind = kind,
                          .opened_ms = kSealedMs - 60'000,
                          .name_space = std::string(name_space),
                          .client_id = std::string(client_id)});
    return *this;
  }
  // A token of `fence`, with the id that belongs to it, held for 4 s from its issue.
  ledger::Token MakeToken(uint64_t fence, int64_t flow_id, uint64_t session, int64_t issued_ms,
                          uint32_t count = 1) const {
    ledger::Token token;
    token.key = {ledger::Family::kTokensShort, issued_ms + 4000,
                 core::TokenIds(format_.token_id_key).FromFence(Fence(fence))};
    token.flow = FlowId(flow_id);
    token.session = SessionId(session);
    token.count = count;
    token.issued_ms = issued_ms;
    token.fence = Fence(fence);
    return token;
  }
  LedgerBuilder& Token(const ledger::Token& token) {
    batch_.TokenIssued(token);
    seal.live_tokens += 1;
    seal.live_count_sum += token.count;
    seal.live_fence_sum += token.fence.value;
    return *this;
  }
  LedgerBuilder& Token(uint64_t fence, int64_t flow_id, uint64_t session, int64_t issued_ms,
                       uint32_t count = 1) {
    return Token(MakeToken(fence, flow_id, session, issued_ms, count));
  }

  // With a text as parameter.
  LedgerBuilder& TokenOf(std::string_view value, uint64_t fence, int64_t flow_id, uint64_t session,
                         int64_t issued_ms) {
    ledger::Token token = MakeToken(fence, flow_id, session, issued_ms);
    token.param = ParamValue(ParamType::kString, std::string(value));
    return Token(token);
  }

  LedgerBuilder& Rate(int64_t flow_id, int64_t begin_ms, int64_t passed) {
    batch_.RateSet({{FlowId(flow_id), begin_ms}, passed, 0});
    return *this;
  }

  // The end of the token of `fence`, of flow 101 and session 1, three seconds after its issue.
  ledger::HistoryEntry MakeEnd(uint64_t sequence, uint64_t fence, int64_t ended_ms,
                               EndReason reason) const {
    ledger::HistoryEntry entry;
    entry.sequence = sequence;
    entry.ended_ms = ended_ms;
    entry.reason = reason;
    entry.token_id = core::TokenIds(format_.token_id_key).FromFence(Fence(fence));
    entry.flow = FlowId(101);
    entry.session = SessionId(1);
    entry.count = 2;
    entry.fence = Fence(fence);
    entry.issued_ms = ended_ms - 3000;
    entry.name_space = "shop";
    entry.client_id = "cart-1";
    return entry;
  }
  LedgerBuilder& End(const ledger::HistoryEntry& entry) {
    batch_.HistoryAdded({&entry, 1});
    return *this;
  }

  store::MemoryStore Build() {
    store::MemoryStore store(format_);
    for (uint64_t number = 1; number < seal.batch_number; ++number) {
      ledger::CommitBatch nothing;
      nothing.Sealed({.batch_number = number});
      Commit(nothing, &store);
    }
    if (watermark_ms.has_value()) batch_.WatermarkRaised(*watermark_ms);
    batch_.ClockMarked(mark);
    batch_.Sealed(seal);
    Commit(batch_, &store);
    return store;
  }

  ledger::ClockMark mark;
  ledger::Seal seal;
  std::optional<int64_t> watermark_ms;

 private:
  static void Commit(const ledger::CommitBatch& batch, store::MemoryStore* store) {
    const Status committed = store->Commit(batch);
    if (!committed.ok()) CheckFailed(__FILE__, __LINE__, committed.ToString().c_str());
  }

  ledger::Format format_;
  ledger::CommitBatch batch_;
};

// Two flows with active rules, one with a removed one; three tokens of two clients.
inline LedgerBuilder SampleLedger() {
  LedgerBuilder builder;
  builder.Rule("shop", GlobalRule(101, 10.7));
  core::Rule average = GlobalRule(102, 5);
  average.threshold_type = core::ThresholdType::kAvgLocal;
  builder.Rule("bank", average);
  builder.Session(1, "shop", "cart-1").Session(2, "bank", "teller-1");
  builder.Token(10, 101, 1, kSealedMs - 3000, 2).Token(11, 101, 1, kSealedMs - 1000);
  builder.Rule("bank", GlobalRule(555, 9), ledger::RuleState::kRemoved);
  builder.Token(12, 555, 2, kSealedMs - 2000, 4);
  return builder;
}

}  // namespace nowcalls::admin

#endif  // NOWCALLS_UNIT_ADMIN_LEDGER_BUILDER_H_
