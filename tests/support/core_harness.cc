#include "support/core_harness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iomanip>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include "core/books.h"
#include "core/loading.h"
#include "core/notices.h"
#include "core/rules/param_items.h"

namespace nowcalls::testing {
namespace {

using core::kNoToken;
using core::TokenOrder;
using core::TokenSlot;

class ContentReader : public ledger::EntityVisitor {
 public:
  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }

  Status On(const ledger::Format&) { return {}; }
  Status On(const ledger::ClockMark& mark) {
    content.clock = mark;
    return {};
  }
  Status On(const ledger::Seal& seal) {
    content.seal = seal;
    return {};
  }
  Status On(const ledger::Watermark& watermark) {
    content.watermark_ms = watermark.deadline_ms;
    return {};
  }
  Status On(const ledger::NamespaceEntry& entry) {
    content.namespaces.push_back(entry);
    return {};
  }
  Status On(const ledger::RuleEntry& rule) {
    content.rules.push_back(rule);
    return {};
  }
  Status On(const ledger::Session& session) {
    content.sessions.push_back(session);
    return {};
  }
  Status On(const ledger::HistoryBlock& block) {
    content.history.insert(content.history.end(), block.begin(), block.end());
    content.history_blocks.push_back(block.size());
    return {};
  }
  Status On(const ledger::RateBucket& bucket) {
    content.rates.push_back(bucket);
    return {};
  }
  Status On(const ledger::Token& token) {
    content.tokens.push_back(token);
    return {};
  }

  LedgerContent content;
};

class CoreLoader : public ledger::EntityVisitor {
 public:
  CoreLoader(core::Core* core, uint32_t format_version)
      : core_(core), format_version_(format_version) {}

  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }

  Status On(const ledger::Format& format) {
    ledger::Format found = format;
    if (format_version_ != 0) found.version = format_version_;
    core_->loading().SetFormat(found);
    return {};
  }
  Status On(const ledger::ClockMark&) { return {}; }
  Status On(const ledger::Seal& found) {
    seal = found;
    core_->loading().ExpectSeal(found);
    return {};
  }
  Status On(const ledger::Watermark&) { return {}; }
  Status On(const ledger::NamespaceEntry& entry) { return core_->loading().LoadNamespace(entry); }
  Status On(const ledger::RuleEntry& rule) { return core_->loading().LoadRule(rule); }
  Status On(const ledger::Session& session) { return core_->loading().LoadSession(session); }
  Status On(const ledger::HistoryBlock& block) { return core_->loading().LoadHistory(block); }
  Status On(const ledger::RateBucket& bucket) { return core_->loading().LoadRate(bucket); }
  Status On(const ledger::Token& token) { return core_->loading().LoadToken(token); }

  std::optional<ledger::Seal> seal;

 private:
  core::Core* core_;
  const uint32_t format_version_;
};

void AppendToken(const ledger::Token& token, std::ostringstream* out) {
  *out << "token " << token.key.id.value << " fence " << token.fence.value << " flow "
       << token.flow.value << " session " << token.session.value << " count " << token.count
       << " issued " << token.issued_ms << " deadline " << token.key.deadline_ms << " in "
       << ledger::FamilyName(token.key.family);
  if (token.param.has_value()) {
    *out << " param " << static_cast<int>(token.param->type) << " " << token.param->bytes;
  }
  *out << "\n";
}

// The tokens of one list, walked forwards; nullopt when its links or size are inconsistent.
std::optional<std::vector<TokenSlot>> Walk(const core::Core& core, const core::TokenList& list,
                                           TokenOrder order) {
  std::vector<TokenSlot> slots;
  TokenSlot previous = kNoToken;
  for (TokenSlot slot = list.head; slot != kNoToken;
       slot = core.books().tokens().at(slot).next(order)) {
    const auto& link = core.books().tokens().at(slot).links[static_cast<size_t>(order)];
    if (link.previous != previous || slots.size() > list.size) return std::nullopt;
    slots.push_back(slot);
    previous = slot;
  }
  if (list.tail != previous || slots.size() != list.size) return std::nullopt;
  return slots;
}

// Sum of count over the tokens of `list`; -1 when the list is wrong or a token is not `owned`.
template <typename Owned>
int64_t SumOf(const core::Core& core, const core::TokenList& list, TokenOrder order, Owned owned) {
  const auto slots = Walk(core, list, order);
  if (!slots) return -1;
  int64_t sum = 0;
  for (const TokenSlot slot : *slots) {
    if (!owned(core.books().tokens().at(slot))) return -1;
    sum += core.books().tokens().at(slot).count;
  }
  return sum;
}

}  // namespace

std::string RulesJson(const std::vector<RuleOptions>& rules) {
  std::ostringstream out;
  out << std::setprecision(17) << "[";
  for (const RuleOptions& rule : rules) {
    out << (&rule == rules.data() ? "" : ",") << R"({"resource":")"
        << (rule.resource.empty() ? "r" + std::to_string(rule.flow) : rule.resource)
        << R"(","grade":0,)" << (rule.param.has_value() ? R"("paramIdx":0,)" : "") << R"("count":)"
        << rule.count << R"(,"maxQueueingTimeMs":)" << rule.max_queueing_ms
        << R"(,"clusterMode":true,"clusterConfig":{)"
        << (rule.flow == 0 ? "" : "\"flowId\":" + std::to_string(rule.flow) + ",")
        << R"("thresholdType":)" << (rule.avg_local ? 0 : 1) << R"(,"resourceTimeout":)"
        << rule.resource_timeout_ms << R"(,"clientOfflineTime":)" << rule.client_offline_ms
        << R"(,"resourceTimeoutStrategy":)" << rule.timeout_strategy
        << R"(,"acquireRefuseStrategy":)" << rule.refuse_strategy << R"(,"shadow":)"
        << (rule.shadow ? "true" : "false");
    if (rule.max_hold_ms > 0) out << R"(,"maxHoldMs":)" << rule.max_hold_ms;
    if (rule.max_per_client > 0) out << R"(,"maxPerClient":)" << rule.max_per_client;
    if (rule.max_per_client_percent > 0) {
      out << R"(,"maxPerClient":")" << rule.max_per_client_percent << "%\"";
    }
    out << "}}";
  }
  out << "]";
  return out.str();
}

void AddParam(const RuleOptions& options, core::Rule* rule) {
  rule->param = options.param;
  if (rule->param.has_value()) core::SortItems(&*rule->param);
}

std::string AnswerText(const std::optional<core::AcquireAnswer>& answer) {
  if (!answer.has_value()) return "waits";
  std::string text(TokenStatusName(answer->status));
  if (answer->refused_by != RefusedBy::kNone) {
    text += " " + std::string(RefusedByName(answer->refused_by));
  }
  return text + " " + std::to_string(answer->now_calls) + "/" + std::to_string(answer->level);
}

core::CoreOptions HarnessOptions() {
  core::CoreOptions options;
  options.token_id_key = {0x0123456789abcdef, 0xfedcba9876543210};
  options.sweep_budget_us = 0;
  return options;
}

LedgerContent ReadLedger(store::LedgerSource* store) {
  ContentReader reader;
  REQUIRE(store->Load(&reader).ToString() == "ok");
  std::sort(reader.content.tokens.begin(), reader.content.tokens.end(),
            [](const auto& a, const auto& b) { return a.fence < b.fence; });
  return reader.content;
}

Status LoadCore(store::LedgerSource* store, Instant now, core::Core* core,
                uint32_t format_version) {
  CoreLoader loader(core, format_version);
  NOWCALLS_RETURN_IF_ERROR(store->Load(&loader));
  NOWCALLS_RETURN_IF_ERROR(core->FinishLoad(loader.seal));
  core->Begin(now);
  return {};
}

std::vector<ledger::HistoryEntry> HistoryOf(const core::Core& core) {
  std::vector<ledger::HistoryEntry> entries;
  for (const ledger::HistoryBlock& block : core.books().history().blocks()) {
    entries.insert(entries.end(), block.begin(), block.end());
  }
  return entries;
}

std::string TokensText(const core::Core& core) {
  std::ostringstream out;
  for (TokenSlot slot = core.books().tokens().all().head; slot != kNoToken;
       slot = core.books().tokens().at(slot).next(TokenOrder::kAll)) {
    const core::TokenEntry& entry = core.books().tokens().at(slot);
    ledger::Token token{.key = {entry.ledger_family(), entry.deadline_ms, core.books().IdOf(entry)},
                        .flow = core.flows().at(entry.flow_slot).id,
                        .session = core.books().sessions().at(entry.session_slot).id,
                        .count = entry.count,
                        .issued_ms = entry.issued_ms,
                        .fence = Fence{entry.fence}};
    const core::KeySlot key = core.books().tokens().KeyOf(slot);
    if (key != core::kNoKey) token.param = core.flows().keys().at(key).value;
    AppendToken(token, &out);
  }
  return out.str();
}

std::string TokensText(const LedgerContent& content) {
  std::ostringstream out;
  for (const ledger::Token& token : content.tokens) AppendToken(token, &out);
  return out.str();
}

std::string NowCallsText(const core::Core& core) {
  std::ostringstream out;
  for (const auto& [key, slot] : core.flows().by_key()) {
    const core::Flow& flow = core.flows().at(slot);
    if (flow.tokens.size == 0) continue;
    out << core::FlowText(key) << " now_calls " << flow.lane.now_calls << " tokens "
        << flow.tokens.size << (flow.rule == nullptr ? " removed" : "") << "\n";
  }
  for (const auto& [id, slot] : core.books().sessions().by_id()) {
    const core::SessionState& session = core.books().sessions().at(slot);
    if (session.tokens.size == 0) continue;
    out << "session " << id << " " << core.flows().name_space(session.name_space).name << "/"
        << session.client_id << " now_calls " << session.now_calls << " tokens "
        << session.tokens.size << "\n";
  }
  return out.str();
}

// The same for the keys: each has its tokens or waiters, and there are no others.
std::string FindWrongKey(const core::Core& core) {
  const core::KeyTable& keys = core.flows().keys();
  std::map<core::KeySlot, std::pair<int64_t, uint32_t>> sums;
  for (TokenSlot slot = core.books().tokens().all().head; slot != kNoToken;
       slot = core.books().tokens().at(slot).next(TokenOrder::kAll)) {
    const core::KeySlot key = core.books().tokens().KeyOf(slot);
    if (key == core::kNoKey) continue;
    if (keys.at(key).flow_slot != core.books().tokens().at(slot).flow_slot)
      return "the flow of a key";
    sums[key].first += core.books().tokens().at(slot).count;
    ++sums[key].second;
  }
  for (const auto& [id, flow_slot] : core.flows().by_key()) {
    for (const core::KeySlot key : keys.WaitingOf(flow_slot)) {
      if (keys.at(key).lane.waiting() == 0) return "the keys that wait";
      sums[key];
    }
  }
  if (sums.size() != keys.size()) return "the number of keys";
  for (const auto& [slot, sum] : sums) {
    const core::Key& key = keys.at(slot);
    if (keys.Find(key.flow_slot, key.value.view()) != slot) return "the index of keys";
    if (sum != std::pair(key.lane.now_calls, key.tokens)) return "nowCalls of a key";
  }
  return "";
}

// Whether the flow is found by its name, in its namespace and in all.
static bool IsNamed(const core::Core& core, core::FlowSlot slot) {
  const core::Flow& flow = core.flows().at(slot);
  const core::FlowName name{flow.rule->resource, flow.key().kind, flow.removed};
  int found = 0;
  const auto visit = [&](core::FlowSlot other) {
    found += other == slot ? 1 : 0;
    return true;
  };
  ForEachNamed(core.flows(), flow.name_space, name, visit);
  ForEachNamed(core.flows(), name, visit);
  return found == 2;
}

std::string FindWrongBook(const core::Core& core) {
  const auto all = Walk(core, core.books().tokens().all(), TokenOrder::kAll);
  if (!all || all->size() != core.books().tokens().size()) return "the list of all tokens";
  int64_t total = 0;
  uint64_t fence_before = 0;
  std::map<core::FlowSlot, int64_t> flow_sums;
  std::map<core::SessionSlot, int64_t> session_sums;
  std::map<std::pair<core::FlowSlot, core::SessionSlot>, int64_t> held_sums;
  for (const TokenSlot slot : *all) {
    const core::TokenEntry& entry = core.books().tokens().at(slot);
    if (entry.fence <= fence_before) return "the order of fences";
    if (core.books().tokens().Find(entry.fence) != slot) return "the index of tokens";
    fence_before = entry.fence;
    total += entry.count;
    flow_sums[entry.flow_slot] += entry.count;
    session_sums[entry.session_slot] += entry.count;
    held_sums[{entry.flow_slot, entry.session_slot}] += entry.count;
  }
  if (static_cast<uint64_t>(total) != core.books().live_count_sum())
    return "the sum over all tokens";
  if (core.flows().names().size() != core.flows().size()) return "the names of flows";
  for (const auto& [key, slot] : core.flows().by_key()) {
    const core::Flow& flow = core.flows().at(slot);
    if (!IsNamed(core, slot)) return "the name of " + core::FlowText(key);
    const int64_t listed =
        SumOf(core, flow.tokens, TokenOrder::kFlow,
              [&, at = slot](const auto& entry) { return entry.flow_slot == at; });
    const int64_t now_calls = flow.lane.now_calls;
    if (listed != now_calls || flow_sums[slot] != now_calls) {
      return "nowCalls of " + core::FlowText(key);
    }
    if (flow.held_by_session != nullptr) {
      int64_t held_sum = 0;
      for (const auto& [session, held] : *flow.held_by_session) {
        if (held != held_sums[{slot, session}]) held_sum = INT64_MIN;
        held_sum += held;
      }
      if (held_sum != now_calls) return "what sessions hold of " + core::FlowText(key);
    }
    const auto& ended = flow.counters.ended;
    if (flow.held_times.Read().count() !=
        std::accumulate(ended.begin(), ended.end(), uint64_t{0})) {
      return "how long tokens of " + core::FlowText(key) + " were held";
    }
    const auto longest_wait_ms = static_cast<uint64_t>(flow.counters.longest_wait_ms);
    if (longest_wait_ms != (flow.waited_times ? flow.waited_times->longest_ms() : 0)) {
      return "how long waits for " + core::FlowText(key) + " were";
    }
    if (flow.rule == nullptr && flow.tokens.size == 0) return "unused " + core::FlowText(key);
  }
  size_t waiters = 0;
  for (const auto& [id, slot] : core.books().sessions().by_id()) {
    const core::SessionState& session = core.books().sessions().at(slot);
    waiters += session.waiters;
    const int64_t listed =
        SumOf(core, session.tokens, TokenOrder::kSession,
              [&, at = slot](const auto& entry) { return entry.session_slot == at; });
    if (listed != session.now_calls || session_sums[slot] != session.now_calls) {
      return "nowCalls of session " + std::to_string(id);
    }
  }
  if (waiters != core.wait_queues().size()) return "waiters of sessions";
  return FindWrongKey(core);
}

Status ReplaceRules(core::Core* core, const core::Step& step, std::string_view name_space,
                    std::string_view json) {
  Result<core::ParsedRules> parsed = core::ParseRules(json, name_space);
  if (!parsed.ok()) return parsed.status();
  const core::RuleSet set{.name_space = std::string(name_space), .parsed = *std::move(parsed)};
  return core->ReplaceRules(step, {&set});
}

CoreHarness::CoreHarness(const core::CoreOptions& options)
    : options_(options), store_(ledger::Format{.token_id_key = options.token_id_key}) {
  core_ = std::make_unique<core::Core>(options_);
  REQUIRE(LoadCore(&store_, now_, core_.get()).ToString() == "ok");
}

void CoreHarness::AfterCall() {
  if (auto_commit && !batch_.empty()) Commit();
}

void CoreHarness::Rules(const std::vector<RuleOptions>& rules, std::string_view name_space) {
  core::RuleSet set{.name_space = std::string(name_space),
                    .parsed = core::ParseRules(RulesJson(rules), name_space).value()};
  for (size_t i = 0; i < rules.size(); ++i) AddParam(rules[i], &set.parsed.rules[i]);
  REQUIRE(core_->ReplaceRules(step(), {&set}).ToString() == "ok");
  const core::NamespaceSlot space = core_->flows().FindNamespace(name_space);
  const size_t now_there =
      space == core::kNoNamespace ? 0 : core_->flows().name_space(space).rule_keys.size();
  REQUIRE(now_there == rules.size());
  AfterCall();
}

void CoreHarness::InstallRules(const std::vector<core::Rule>& rules, std::string_view name_space) {
  core::RuleSet set;
  set.name_space = name_space;
  set.parsed.rules = rules;
  REQUIRE(core_->ReplaceRules(step(), {&set}).ToString() == "ok");
  AfterCall();
}

core::SessionSlot CoreHarness::Hello(std::string_view client_id, std::string_view name_space) {
  const auto hello = core_->Hello(step(), {name_space, client_id, "@127.0.0.1:1"});
  REQUIRE(hello.status().ToString() == "ok");
  AfterCall();
  return hello->session;
}

core::SessionSlot CoreHarness::HelloUnnamed(std::string_view peer, std::string_view name_space) {
  const auto hello = core_->Hello(step(), {name_space, std::nullopt, peer});
  REQUIRE(hello.status().ToString() == "ok");
  AfterCall();
  return hello->session;
}

void CoreHarness::Goodbye(core::SessionSlot session, uint32_t owner, std::string_view display_id) {
  core_->Goodbye(step(), session, owner, display_id);
  AfterCall();
}

core::AcquireAnswer CoreHarness::Acquire(core::SessionSlot session, int64_t flow, int64_t count) {
  const auto answer = Ask(session, {.flow = FlowId{flow}, .count = count}, 0);
  REQUIRE(answer.has_value());
  return *answer;
}

std::optional<core::AcquireAnswer> CoreHarness::Ask(core::SessionSlot session,
                                                    const core::AcquireRequest& request,
                                                    uint32_t tag, uint32_t owner) {
  const auto answer = core_->Acquire(step(), session, request, {.owner = owner, .tag = tag});
  AfterCall();
  return answer;
}

std::optional<core::AcquireAllAnswer> CoreHarness::AskAll(core::SessionSlot session,
                                                          const core::AcquireAllRequest& request,
                                                          uint32_t tag, uint32_t owner) {
  auto answer = core_->AcquireAll(step(), session, request, {.owner = owner, .tag = tag});
  AfterCall();
  return answer;
}

TokenStatus CoreHarness::Cancel(core::SessionSlot session, uint64_t request_id) {
  const TokenStatus status = core_->Cancel(step(), session, request_id);
  AfterCall();
  return status;
}

void CoreHarness::DropWaiters(uint32_t owner) {
  core_->DropWaiters(step(), owner);
  AfterCall();
}

std::string CoreHarness::LateText() {
  std::string text;
  for (const core::LateAnswer& late : core_->TakeLateAnswers()) {
    const bool is_group = late.all.has_value();
    const TokenStatus status = is_group ? late.all->status : late.answer.status;
    const RefusedBy limit = is_group ? late.all->refused_by : late.answer.refused_by;
    text += (text.empty() ? "" : ", ") + std::to_string(late.ticket.tag) + " ";
    text += TokenStatusName(status);
    if (limit != RefusedBy::kNone) text += " " + std::string(RefusedByName(limit));
    if (is_group && late.all->flow.value != 0) {
      text += " of " + std::to_string(late.all->flow.value);
    }
  }
  return text;
}

TokenId CoreHarness::Take(core::SessionSlot session, int64_t flow, int64_t count) {
  const core::AcquireAnswer answer = Acquire(session, flow, count);
  REQUIRE(TokenStatusName(answer.status) == "OK");
  return answer.token_id;
}

TokenStatus CoreHarness::Release(core::SessionSlot session, TokenId token) {
  const TokenStatus status = core_->Release(step(), session, token);
  AfterCall();
  return status;
}

core::KeepAnswer CoreHarness::Keep(core::SessionSlot session, TokenId token) {
  const core::KeepAnswer answer = core_->Keep(step(), session, token);
  AfterCall();
  return answer;
}

TokenStatus CoreHarness::Reclaim(TokenId token) {
  const TokenStatus status = core_->Reclaim(step(), token, {.by = "127.0.0.1:9", .reason = "test"});
  AfterCall();
  return status;
}

void CoreHarness::Pass(int64_t duration_ms) {
  const Instant end = now_ + duration_ms;
  DoDue();
  while (core_->NextDeadline() <= end) {
    now_ = std::max(now_, core_->NextDeadline());
    DoDue();
  }
  now_ = end;
}

void CoreHarness::DoDue() {
  // A server whose timer is due again at once forever would spin; so would this loop.
  for (int rounds = 0; core_->NextDeadline() <= now_; ++rounds) {
    REQUIRE(rounds < 100'000);
    core_->OnTime(step());
    AfterCall();
    ScanStep();
  }
}

std::optional<size_t> CoreHarness::ScanStep() {
  const auto request = core_->BeginScan(now_);
  if (!request) return std::nullopt;
  ledger::ScanResult result;
  store_.Scan(*request, &result);
  REQUIRE(core_->OnScanDone(step(), result).ToString() == "ok");
  AfterCall();
  return result.expired.size();
}

void CoreHarness::Commit() {
  core_->Seal(step(), ClockSample{.boottime_ms = now_.ms, .wall_ms = now_.ms, .boot_id = {}});
  REQUIRE(store_.Commit(batch_).ToString() == "ok");
  batch_.Clear();
}

void CoreHarness::Restart(int64_t down_ms, uint32_t format_version) {
  batch_.Clear();
  now_ = now_ + down_ms;
  core_ = std::make_unique<core::Core>(options_);
  REQUIRE(LoadCore(&store_, now_, core_.get(), format_version).ToString() == "ok");
}

int64_t CoreHarness::NowCalls(int64_t flow) const {
  int64_t sum = 0;
  for (const core::FlowSlot slot : FindAll(core_->flows(), FlowId{flow})) {
    sum += core_->flows().at(slot).lane.now_calls;
  }
  return sum;
}

uint64_t CoreHarness::Ended(int64_t flow, EndReason reason) const {
  uint64_t sum = 0;
  for (const core::FlowSlot slot : FindAll(core_->flows(), FlowId{flow})) {
    sum += core_->flows().at(slot).counters.ended[static_cast<size_t>(reason)];
  }
  return sum;
}

bool CoreHarness::IsLive(TokenId token) const {
  for (TokenSlot slot = core_->books().tokens().all().head; slot != kNoToken;
       slot = core_->books().tokens().at(slot).next(TokenOrder::kAll)) {
    if (core_->books().IdOf(core_->books().tokens().at(slot)) == token) return true;
  }
  return false;
}

std::string CoreHarness::NoticesText() {
  std::string text;
  for (const core::Notice& notice : core_->TakeNotices()) text += notice.text + "\n";
  return text;
}

}  // namespace nowcalls::testing
