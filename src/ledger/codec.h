// Keys and values of every column family as bytes: pure functions, no I/O.
//
// Thread: any. Layouts are specified, with worked examples, in FORMAT.md; data/golden/ledger_*.hex
// holds the same bytes for the tests. All integers are big-endian; every value starts with a
// version byte, but the format record, which starts with the format version itself. Decoders accept
// exactly what the encoders produce and say what is wrong otherwise (kCorruption, naming the
// field); they never read past the input.
//
// REQUIRES of all encoders: an entity within the ranges that its decoder checks. Anything else ends
// the process (base/check.h), because it could not be read back.
#ifndef NOWCALLS_LEDGER_CODEC_H_
#define NOWCALLS_LEDGER_CODEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/entities.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

// Keys of the meta family.
inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kClockKey = "clock";
inline constexpr std::string_view kSealKey = "seal";
inline constexpr std::string_view kWatermarkKey = "watermark";

inline constexpr size_t kTokenKeyBytes = 16;
inline constexpr size_t kTokenValueBytes = 45;
inline constexpr size_t kSessionKeyBytes = 8;
inline constexpr size_t kFormatBytes = 28;
inline constexpr size_t kClockMarkBytes = 41;
inline constexpr size_t kSealBytes = 49;
inline constexpr size_t kWatermarkBytes = 9;
inline constexpr size_t kLogDataBytes = 10;

// deadline_ms:be64 | token_id:be64. Keys sort by deadline.
void EncodeTokenKey(const TokenKey& key, char out[kTokenKeyBytes]);
Result<TokenKey> DecodeTokenKey(Family family, std::string_view bytes);

// The least key of a token family whose deadline is at least `deadline_ms`, which may be any
// number.
std::string TokenKeyLowerBound(int64_t deadline_ms);

// version 1 | flow | session | count | issued_ms | fence | request_id. REQUIRES: no parameter.
void EncodeTokenValue(const Token& token, char out[kTokenValueBytes]);
// version 2 | the same fields | parameter, at `out`, which has room for it; returns the byte behind
// it. Of `token` all but the parameter is read.
char* EncodeKeyedTokenValue(const Token& token, const Param& param, char* out);
// Either of the two.
std::string EncodeTokenValue(const Token& token);
// Of either layout. Checks ranges too: flow, session, fence and count must be positive, count at
// most kCountMax, 0 <= issued_ms <= deadline_ms <= 2^62.
Result<Token> DecodeToken(Family family, std::string_view key, std::string_view value);
// As DecodeToken, without making the token.
struct TokenHead {
  TokenKey key;
  bool has_param = false;
};
Result<TokenHead> CheckToken(Family family, std::string_view key, std::string_view value);

std::string EncodeSessionKey(SessionId id);
Result<SessionId> DecodeSessionKey(std::string_view key);

// version | kind | opened_ms | namespace and client id, each behind its length in one byte
std::string EncodeSessionValue(const Session& session);
Result<Session> DecodeSession(std::string_view key, std::string_view value);

// namespace | 0x00 | flow_id:be64, so that a namespace's rules lie together. A namespace holds no
// NUL. The value is a version byte, the state and the rule's JSON text (not empty), which src/core
// interprets; or it has two rules, that of the flow and that by value.
std::string EncodeRuleKey(std::string_view name_space, FlowId flow);
struct RuleKey {
  std::string_view name_space;  // Points into the decoded bytes.
  FlowId flow;
};
Result<RuleKey> DecodeRuleKey(std::string_view key);
std::string EncodeRuleValue(RuleState state, std::string_view json);
// REQUIRES: rules of one namespace and one flow id.
std::string EncodeRuleValue(const RuleEntry& of_flow, const RuleEntry& by_value);
// One rule or two.
Result<std::vector<RuleEntry>> DecodeRules(std::string_view key, std::string_view value);

std::string EncodeFormat(const Format& format);
// A version that is not kFormatVersionMin .. kFormatVersion is kFailedPrecondition with a message
// for the operator.
Result<Format> DecodeFormat(std::string_view value);
std::string EncodeClockMark(const ClockMark& mark);
Result<ClockMark> DecodeClockMark(std::string_view value);
std::string EncodeSeal(const Seal& seal);
Result<Seal> DecodeSeal(std::string_view value);

// What a store writes into its log behind the changes of a batch; 0: behind those of no batch. Its
// last byte is not zero, so a log that zeros follow ends behind its last byte that is none.
std::string EncodeLogData(uint64_t batch_number);
// Nothing for what is no log data, or that of another version.
std::optional<uint64_t> DecodeLogData(std::string_view bytes);
std::string EncodeWatermark(int64_t deadline_ms);
Result<int64_t> DecodeWatermark(std::string_view value);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_CODEC_H_
