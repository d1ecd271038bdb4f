#include "unit/store/ledger_script.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "ledger/codec.h"

namespace nowcalls::store {
namespace {

using ledger::CommitBatch;
using ledger::Family;
using ledger::Token;
using ledger::TokenKey;

// Keeps long scripts cheap to follow.
constexpr size_t kTokensMax = 2000;

// Some batches add this many, so that blocks are dropped in the batch that added them too.
constexpr size_t kHistoryMax = 15;   // Blocks.
constexpr size_t kHistoryBlock = 5;  // Entries, at most.

// A request id that is, in a log, a sound record without bytes, or with one: what a client may
// choose so that the rest of a batch looks like damage.
uint64_t RequestIdLikeRecord(uint64_t random) {
  std::string bytes = {'\1', static_cast<char>(random >> 8)};
  const size_t length = random % 2;
  const uint32_t crc = Crc32c(bytes.substr(0, 1 + length));
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  std::string header;
  for (int shift = 0; shift < 32; shift += 8) header += static_cast<char>(masked >> shift);
  header += {static_cast<char>(length), '\0'};
  return LoadBigEndian<uint64_t>((header + bytes).data());
}

std::string LineOf(const Token& token) {
  char key[ledger::kTokenKeyBytes];
  ledger::EncodeTokenKey(token.key, key);
  return "token " + std::string(FamilyName(token.key.family)) + " " + ToHex({key, sizeof(key)}) +
         " " + ToHex(ledger::EncodeTokenValue(token));
}

std::string LineOf(const ledger::Session& session) {
  return "session " + std::to_string(session.id.value) + " " +
         ToHex(ledger::EncodeSessionValue(session));
}

std::string LineOf(const ledger::RuleEntry& rule) {
  return "rule " + rule.name_space + " " + std::to_string(rule.flow.value) + " " + rule.json;
}

std::string LineOf(const ledger::HistoryBlock& block) {
  return "history " + std::to_string(block.front().sequence) + " " +
         ToHex(ledger::EncodeHistoryValue(block));
}

std::string LineOf(const ledger::RateBucket& bucket) {
  return "rate " + std::to_string(bucket.key.flow.value) + " " +
         std::to_string(bucket.key.begin_ms) + " " + std::to_string(bucket.passed) + " " +
         std::to_string(bucket.lent);
}

class DumpVisitor : public ledger::EntityVisitor {
 public:
  explicit DumpVisitor(Dump* dump) : dump_(*dump) {}

  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }
  Status OnBadRecord(const ledger::BadRecord& record) override {
    return Add("bad " + record.WithPlace().ToString());
  }

 private:
  Status On(const ledger::Format& format) {
    return format.version == ledger::kFormatVersion ? Status::Ok() : Status::Corruption("version");
  }
  Status On(const ledger::ClockMark& mark) {
    return Add("clock " + ToHex(ledger::EncodeClockMark(mark)));
  }
  Status On(const ledger::Seal& seal) { return Add("seal " + ToHex(ledger::EncodeSeal(seal))); }
  Status On(const ledger::Watermark& watermark) {
    return Add("watermark " + std::to_string(watermark.deadline_ms));
  }
  Status On(const ledger::NamespaceEntry& entry) {
    return Add("namespace " + entry.name_space + " " + entry.source);
  }
  Status On(const auto& entity) { return Add(LineOf(entity)); }
  Status Add(std::string line) {
    dump_.push_back(std::move(line));
    return {};
  }
  Dump& dump_;
};

}  // namespace

Dump DumpOfLoad(const std::function<Status(ledger::EntityVisitor* visitor)>& load) {
  Dump dump;
  DumpVisitor visitor(&dump);
  const Status status = load(&visitor);
  if (!status.ok()) return {status.ToString()};
  return dump;
}

uint64_t BatchNumberOf(const Dump& dump) {
  for (const std::string& line : dump) {
    if (!line.starts_with("seal ")) continue;
    const Result<std::string> bytes = FromHex(line.substr(5));
    return ledger::DecodeSeal(*bytes)->batch_number;
  }
  return 0;
}

std::string DifferenceOf(const Dump& got, const Dump& expected) {
  const size_t both = std::min(got.size(), expected.size());
  for (size_t i = 0; i < both; ++i) {
    if (got[i] == expected[i]) continue;
    return "line " + std::to_string(i) + ": " + got[i] + " instead of " + expected[i];
  }
  if (got.size() > both) return "one more: " + got[both];
  if (expected.size() > both) return "missing: " + expected[both];
  return {};
}

int64_t LedgerScript::AnyHoldMs() {
  constexpr int64_t kHoldsMs[] = {50, 4'000, 9'999, 60'000, 300'000, 3'600'000};
  return kHoldsMs[random_.Next() % std::size(kHoldsMs)] + static_cast<int64_t>(random_.Next() % 50);
}

TokenKey LedgerScript::AnyTokenKey() {
  const Family family = ledger::kTokenFamilies[random_.Next() % ledger::kTokenFamilies.size()];
  const int64_t deadline_ms =
      now_ms_ + static_cast<int64_t>(random_.Next() % (1 << (random_.Next() % 22)));
  const auto found = tokens_.lower_bound({family, deadline_ms, TokenId(0)});
  return found != tokens_.end() ? found->first : tokens_.begin()->first;
}

void LedgerScript::Issue(CommitBatch* batch) {
  const int64_t hold_ms = AnyHoldMs();
  Token token;
  token.key = {ledger::FamilyForHold(hold_ms), now_ms_ + hold_ms,
               TokenId((random_.Next() >> 1) | 1)};
  token.flow = FlowId(static_cast<int64_t>(1 + random_.Next() % 100));
  token.session = SessionId(1 + random_.Next() % 1000);
  token.count = static_cast<uint32_t>(1 + random_.Next() % 5);
  token.issued_ms = now_ms_;
  token.fence = Fence(next_fence_++);
  token.request_id = random_.Next();
  if (token.request_id % 8 == 1) {
    token.param.emplace(ParamType::kString, "user-" + std::to_string(token.request_id >> 50));
  }
  if (token.request_id % 4 == 0) token.request_id = RequestIdLikeRecord(token.request_id >> 2);
  batch->TokenIssued(token);
  tokens_.emplace(token.key, token);
  count_sum_ += token.count;
  fence_sum_ += token.fence.value;
}

void LedgerScript::Keep(CommitBatch* batch) {
  if (tokens_.empty()) return;
  auto node = tokens_.extract(AnyTokenKey());
  Token token = node.mapped();
  const int64_t hold_ms = AnyHoldMs();
  const TokenKey before = token.key;
  token.key.family = ledger::FamilyForHold(hold_ms);
  token.key.deadline_ms = now_ms_ + hold_ms;
  batch->TokenKept(before, token);
  tokens_.emplace(token.key, token);
}

void LedgerScript::End(CommitBatch* batch) {
  if (tokens_.empty()) return;
  const auto ended = tokens_.find(AnyTokenKey());
  const auto reason = static_cast<EndReason>(1 + random_.Next() % (kEndReasonCount - 1));
  batch->TokenEnded(ended->first, reason);
  if (ledger::IsKeptInHistory(reason)) AddHistory(ended->second, reason, batch);
  count_sum_ -= ended->second.count;
  fence_sum_ -= ended->second.fence.value;
  tokens_.erase(ended);
}

void LedgerScript::AddHistory(const Token& token, EndReason reason, CommitBatch* batch) {
  ledger::HistoryEntry entry;
  entry.sequence = ++last_history_;
  entry.ended_ms = now_ms_;
  entry.reason = reason;
  entry.token_id = token.key.id;
  entry.flow = token.flow;
  entry.session = token.session;
  entry.count = token.count;
  entry.fence = token.fence;
  entry.issued_ms = token.issued_ms;
  entry.name_space = "orders";
  entry.client_id = "client-" + std::to_string(token.session.value);
  if (reason == EndReason::kAdmin) entry.note = "stuck";
  entry.param = token.param;
  block_.push_back(entry);
  if (block_.size() == kHistoryBlock) AddBlock(batch);
}

void LedgerScript::AddBlock(CommitBatch* batch) {
  if (block_.empty()) return;
  batch->HistoryAdded(block_);
  history_.push_back(std::exchange(block_, {}));
  if (history_.size() <= kHistoryMax) return;
  batch->HistoryDropped(history_.front().front().sequence);
  history_.pop_front();
}

void LedgerScript::OpenSession(CommitBatch* batch) {
  const ledger::Session session{SessionId(next_fence_++), ledger::SessionKind::kNamed, now_ms_,
                                "orders", "client-" + std::to_string(random_.Next() % 1000)};
  batch->SessionOpened(session);
  sessions_.emplace(session.id.value, session);
}

void LedgerScript::CloseSession(CommitBatch* batch) {
  if (sessions_.empty()) return;
  batch->SessionClosed(SessionId(sessions_.begin()->first));
  sessions_.erase(sessions_.begin());
}

void LedgerScript::ChangeRule(CommitBatch* batch) {
  const std::string name_space = random_.Next() % 2 == 0 ? "orders" : "payments";
  const FlowId flow(static_cast<int64_t>(1 + random_.Next() % 10));
  if (random_.Next() % 3 == 0) {
    batch->RuleRemoved(name_space, flow);
    rules_.erase({name_space, flow.value});
    return;
  }
  const std::string json = R"({"count":)" + std::to_string(random_.Next() % 100) + "}";
  batch->RuleSet({name_space, flow, ledger::RuleState::kActive, json});
  rules_[{name_space, flow.value}] = json;
}

void LedgerScript::ChangeRate(CommitBatch* batch) {
  ledger::RateBucket bucket;
  bucket.key.flow = FlowId(static_cast<int64_t>(1 + random_.Next() % 10));
  bucket.key.begin_ms = kScriptStartMs + static_cast<int64_t>(random_.Next() % 5) * 1000;
  if (random_.Next() % 3 == 0) {
    batch->RateDropped(bucket.key);
    rates_.erase(bucket.key);
    return;
  }
  bucket.passed = static_cast<int64_t>(random_.Next() % 1000);
  batch->RateSet(bucket);
  rates_[bucket.key] = bucket;
}

void LedgerScript::Seal(CommitBatch* batch) {
  AddBlock(batch);
  const ledger::Seal seal{++batch_number_, next_fence_, now_ms_,
                          tokens_.size(),  count_sum_,  fence_sum_};
  batch->Sealed(seal);
  seal_ = seal;
}

void LedgerScript::NextBatch(int records, CommitBatch* batch) {
  batch->Clear();
  now_ms_ += static_cast<int64_t>(1 + random_.Next() % 20);
  for (int i = 0; i < records; ++i) {
    const uint64_t choice = random_.Next() % 100;
    if (choice < 45 && tokens_.size() < kTokensMax) {
      Issue(batch);
    } else if (choice < 75) {
      End(batch);
    } else if (choice < 90) {
      Keep(batch);
    } else if (choice < 94) {
      OpenSession(batch);
    } else if (choice < 97) {
      CloseSession(batch);
    } else if (choice < 99) {
      ChangeRule(batch);
    } else {
      ChangeRate(batch);
    }
  }
  if (random_.Next() % 4 == 0) {
    clock_ = ledger::ClockMark{now_ms_, {now_ms_ - kScriptStartMs, now_ms_ + 7, {1, 2, 3}}};
    batch->ClockMarked(*clock_);
  }
  Seal(batch);
}

void LedgerScript::LastBatch(CommitBatch* batch) {
  batch->Clear();
  while (!tokens_.empty()) End(batch);
  while (!sessions_.empty()) CloseSession(batch);
  Seal(batch);
}

Dump LedgerScript::Expected() const {
  Dump dump;
  if (clock_) dump.push_back("clock " + ToHex(ledger::EncodeClockMark(*clock_)));
  if (seal_) dump.push_back("seal " + ToHex(ledger::EncodeSeal(*seal_)));
  for (const auto& [key, json] : rules_) {
    dump.push_back(
        LineOf(ledger::RuleEntry{key.first, FlowId(key.second), ledger::RuleState::kActive, json}));
  }
  for (const auto& [id, session] : sessions_) dump.push_back(LineOf(session));
  for (const ledger::HistoryBlock& block : history_) dump.push_back(LineOf(block));
  for (const auto& [key, bucket] : rates_) dump.push_back(LineOf(bucket));
  for (const auto& [key, token] : tokens_) dump.push_back(LineOf(token));
  return dump;
}

}  // namespace nowcalls::store
