// The entities whose bytes data/golden/ledger_*.hex holds.
#ifndef NOWCALLS_UNIT_LEDGER_SAMPLES_H_
#define NOWCALLS_UNIT_LEDGER_SAMPLES_H_

#include "ledger/entities.h"
#include "ledger/history_entry.h"

namespace nowcalls::ledger {

inline constexpr int64_t kSampleMs = 1'700'000'000'000;
inline constexpr char kSampleJson[] = R"({"resource":"db","count":10})";

inline constexpr char kSampleSource[] = "file:/etc/nowcalls/orders.json";

inline Token SampleToken() {
  Token token;
  token.key = {Family::kTokensShort, kSampleMs + 4000, TokenId(0x0123456789abcdef)};
  token.flow = FlowId(1001);
  token.session = SessionId(42);
  token.count = 2;
  token.issued_ms = kSampleMs;
  token.fence = Fence(43);
  token.request_id = 7;
  return token;
}

inline Token SampleKeyedToken() {
  Token token = SampleToken();
  token.param.emplace(ParamType::kString, "alice");
  return token;
}

// The sample token after a keep for five minutes.
inline Token SampleTokenKept() {
  Token token = SampleToken();
  token.key.family = Family::kTokensMedium;
  token.key.deadline_ms = kSampleMs + 304'000;
  return token;
}

inline Session SampleSession() {
  return {SessionId(42), SessionKind::kNamed, kSampleMs - 1000, "orders", "checkout-7"};
}

inline Session SampleSessionOfInstance() {
  Session session = SampleSession();
  session.instance = 0x0102030405060708;
  return session;
}

inline RuleEntry SampleRule() { return {"orders", FlowId(1001), RuleState::kActive, kSampleJson}; }
inline RuleEntry SampleRuleByValue() {
  return {"orders", FlowId(1001), RuleState::kDraining,
          R"({"resource":"db","paramIdx":0,"count":2})"};
}

inline Format SampleFormat() {
  return {kFormatVersion, {0x0011223344556677, 0x8899aabbccddeeff}, kSampleMs - 5000};
}

inline ClockMark SampleClockMark() {
  ClockMark mark{kSampleMs, {86'400'000, kSampleMs + 250, {}}};
  uint8_t next = 0x10;
  for (uint8_t& byte : mark.machine.boot_id) byte = next++;
  return mark;
}

// The sample token, taken back by an administrator.
inline HistoryEntry SampleHistoryEntry() {
  HistoryEntry entry;
  entry.sequence = 12;
  entry.ended_ms = kSampleMs + 3000;
  entry.reason = EndReason::kAdmin;
  entry.token_id = SampleToken().key.id;
  entry.flow = SampleToken().flow;
  entry.session = SampleToken().session;
  entry.count = SampleToken().count;
  entry.fence = SampleToken().fence;
  entry.issued_ms = SampleToken().issued_ms;
  entry.name_space = SampleSession().name_space;
  entry.client_id = SampleSession().client_id;
  entry.note = "hung job";
  return entry;
}

// The entry above, and one more.
inline HistoryBlock SampleHistoryBlock() {
  HistoryEntry next = SampleHistoryEntry();
  next.sequence = 13;
  next.ended_ms = kSampleMs + 3500;
  next.reason = EndReason::kClientOffline;
  next.token_id.value += 1;
  next.count = 1;
  next.fence.value += 1;
  next.issued_ms = kSampleMs + 1500;
  next.note = "";
  return {SampleHistoryEntry(), next};
}

// The block above, the first entry with the parameter long -2.
inline HistoryBlock SampleKeyedHistoryBlock() {
  HistoryBlock block = SampleHistoryBlock();
  block[0].param.emplace(ParamType::kLong, std::string(7, '\xff') + '\xfe');
  return block;
}

// The block above, the first entry with the instance of SampleSessionOfInstance.
inline HistoryBlock SampleMarkedHistoryBlock() {
  HistoryBlock block = SampleKeyedHistoryBlock();
  block[0].instance = SampleSessionOfInstance().instance;
  return block;
}

inline RateBucket SampleRateBucket() { return {{FlowId(1001), kSampleMs}, 17, 2}; }

inline Seal SampleSeal() { return {3, 44, kSampleMs, 1, 2, 43}; }

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_UNIT_LEDGER_SAMPLES_H_
