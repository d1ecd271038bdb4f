// Keys and values of every column family as bytes. Layouts, ranges and examples: FORMAT.md.
//
// Thread: any. Decoders accept exactly the encoders' output; else kCorruption naming the field.
// REQUIRES of encoders: an entity within the decoder's ranges; else the process ends.
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

// Sorts by deadline.
void EncodeTokenKey(const TokenKey& key, char out[kTokenKeyBytes]);
Result<TokenKey> DecodeTokenKey(Family family, std::string_view bytes);

// The least key with a deadline >= `deadline_ms`.
std::string TokenKeyLowerBound(int64_t deadline_ms);

// Version 1. REQUIRES: no parameter.
void EncodeTokenValue(const Token& token, char out[kTokenValueBytes]);
// Version 2. Ignores token.param. Returns the end.
char* EncodeKeyedTokenValue(const Token& token, const Param& param, char* out);
// Version 1 or 2, by token.param.
std::string EncodeTokenValue(const Token& token);
// Versions 1 and 2.
Result<Token> DecodeToken(Family family, std::string_view key, std::string_view value);
struct TokenHead {
  TokenKey key;
  bool has_param = false;
};
Result<TokenHead> CheckToken(Family family, std::string_view key, std::string_view value);

std::string EncodeSessionKey(SessionId id);
Result<SessionId> DecodeSessionKey(std::string_view key);

std::string EncodeSessionValue(const Session& session);
Result<Session> DecodeSession(std::string_view key, std::string_view value);

// Sorts by namespace. Values hold one rule or two.
std::string EncodeRuleKey(std::string_view name_space, FlowId flow);
struct RuleKey {
  std::string_view name_space;  // Points into the decoded bytes.
  FlowId flow;
};
Result<RuleKey> DecodeRuleKey(std::string_view key);
std::string EncodeRuleValue(RuleState state, std::string_view json);
// REQUIRES: equal namespace and flow id.
std::string EncodeRuleValue(const RuleEntry& of_flow, const RuleEntry& by_value);
Result<std::vector<RuleEntry>> DecodeRules(std::string_view key, std::string_view value);

std::string EncodeFormat(const Format& format);
// kFailedPrecondition, with advice for the operator, outside kFormatVersionMin .. kFormatVersion.
Result<Format> DecodeFormat(std::string_view value);
std::string EncodeClockMark(const ClockMark& mark);
Result<ClockMark> DecodeClockMark(std::string_view value);
std::string EncodeSeal(const Seal& seal);
Result<Seal> DecodeSeal(std::string_view value);

// Log data behind a batch's changes; 0: of no batch.
std::string EncodeLogData(uint64_t batch_number);
// nullopt for other bytes or another version.
std::optional<uint64_t> DecodeLogData(std::string_view bytes);
std::string EncodeWatermark(int64_t deadline_ms);
Result<Watermark> DecodeWatermark(std::string_view value);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_CODEC_H_
