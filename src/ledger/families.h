// The column families of a ledger, found by name. FORMAT.md gives their contents.
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
  kRates = 7,    // Windows of calls a second.
};

// RocksDB's SingleDelete needs keys that are put once.
enum class Keys : uint8_t {
  kPutAgain,  // Deleted by Delete.
  kPutOnce,   // Deleted once, by SingleDelete.
};

struct FamilyRow {
  Family family;
  std::string_view name;
  Keys keys;
  uint32_t since_format;  // Ledgers of earlier format versions may be without it.
};

// By number.
inline constexpr size_t kFamilyCount = 8;
inline constexpr std::array<FamilyRow, kFamilyCount> kFamilies = {{
    {Family::kMeta, "default", Keys::kPutAgain, 1},
    {Family::kRules, "rules", Keys::kPutAgain, 1},
    {Family::kSessions, "sessions", Keys::kPutOnce, 1},
    {Family::kTokensShort, "tokens_short", Keys::kPutOnce, 1},
    {Family::kTokensMedium, "tokens_medium", Keys::kPutOnce, 1},
    {Family::kTokensLong, "tokens_long", Keys::kPutOnce, 1},
    {Family::kHistory, "history", Keys::kPutOnce, 1},
    {Family::kRates, "rates", Keys::kPutAgain, 3},
}};

inline constexpr std::array<Family, kFamilyCount> kLoadOrder = {
    Family::kMeta,  Family::kRules,       Family::kSessions,     Family::kHistory,
    Family::kRates, Family::kTokensShort, Family::kTokensMedium, Family::kTokensLong};
inline constexpr std::array<Family, 3> kTokenFamilies = {
    Family::kTokensShort, Family::kTokensMedium, Family::kTokensLong};

inline constexpr int64_t kShortHoldMs = 10'000;
inline constexpr int64_t kMediumHoldMs = 300'000;

constexpr const FamilyRow& RowOf(Family family) { return kFamilies[static_cast<size_t>(family)]; }
constexpr std::string_view FamilyName(Family family) { return RowOf(family).name; }
constexpr bool IsPutOnce(Family family) { return RowOf(family).keys == Keys::kPutOnce; }

constexpr bool IsTokenFamily(Family family) {
  return family >= Family::kTokensShort && family <= Family::kTokensLong;
}

// Tokens of like lifetime share a family (README, decision 6).
constexpr Family FamilyForHold(int64_t hold_ms) {
  if (hold_ms <= kShortHoldMs) return Family::kTokensShort;
  if (hold_ms <= kMediumHoldMs) return Family::kTokensMedium;
  return Family::kTokensLong;
}

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_FAMILIES_H_
