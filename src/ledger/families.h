// The column families of a ledger, found by name, never by position. FORMAT.md gives their
// contents.
#ifndef NOWCALLS_LEDGER_FAMILIES_H_
#define NOWCALLS_LEDGER_FAMILIES_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace nowcalls::ledger {

// Numbers appear in commit records and are never reused.
enum class Family : uint8_t {
  kMeta = 0,  // RocksDB's "default": format, clock, seal, watermark.
  kRules = 1,
  kSessions = 2,
  kTokensShort = 3,   // Hold of at most kShortHoldMs when put.
  kTokensMedium = 4,  // Hold of at most kMediumHoldMs.
  kTokensLong = 5,
  kHistory = 6,  // The last ends of tokens that their holders did not bring about in time.
  kRates = 7,    // Windows of calls a second. Absent from a ledger of format version 1 or 2.
};

inline constexpr int kFamilyCount = 8;
inline constexpr std::array<Family, kFamilyCount> kAllFamilies = {
    Family::kMeta,         Family::kRules,      Family::kSessions, Family::kTokensShort,
    Family::kTokensMedium, Family::kTokensLong, Family::kHistory,  Family::kRates};
// Tokens come last: they may be millions.
inline constexpr std::array<Family, kFamilyCount> kLoadOrder = {
    Family::kMeta,  Family::kRules,       Family::kSessions,     Family::kHistory,
    Family::kRates, Family::kTokensShort, Family::kTokensMedium, Family::kTokensLong};
inline constexpr std::array<Family, 3> kTokenFamilies = {
    Family::kTokensShort, Family::kTokensMedium, Family::kTokensLong};

inline constexpr int64_t kShortHoldMs = 10'000;
inline constexpr int64_t kMediumHoldMs = 300'000;

constexpr std::string_view FamilyName(Family family) {
  constexpr std::array<std::string_view, kFamilyCount> kNames = {
      "default",       "rules",       "sessions", "tokens_short",
      "tokens_medium", "tokens_long", "history",  "rates"};
  return kNames[static_cast<size_t>(family)];
}

constexpr bool IsTokenFamily(Family family) {
  return family >= Family::kTokensShort && family <= Family::kTokensLong;
}

// Tokens of like lifetime share a family (README, decision 9).
constexpr Family FamilyForHold(int64_t hold_ms) {
  if (hold_ms <= kShortHoldMs) return Family::kTokensShort;
  if (hold_ms <= kMediumHoldMs) return Family::kTokensMedium;
  return Family::kTokensLong;
}

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_FAMILIES_H_
