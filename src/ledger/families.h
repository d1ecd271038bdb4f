// The column families of a ledger. Fixed when the ledger is formatted, found by name when it is
// opened, never by position. src/ledger/FORMAT.md describes what each holds.
#ifndef NOWCALLS_LEDGER_FAMILIES_H_
#define NOWCALLS_LEDGER_FAMILIES_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace nowcalls::ledger {

// The numbers appear in commit records and are never reused.
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
// The order in which a ledger is read: the tokens, which may be millions, come last.
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

// The family of a token that may be held for `hold_ms` from now. Tokens of like lifetime share a
// family so that short-lived ones meet their delete in the memtable and long-lived ones do not
// pin the log of the short ones.
constexpr Family FamilyForHold(int64_t hold_ms) {
  if (hold_ms <= kShortHoldMs) return Family::kTokensShort;
  if (hold_ms <= kMediumHoldMs) return Family::kTokensMedium;
  return Family::kTokensLong;
}

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_FAMILIES_H_
