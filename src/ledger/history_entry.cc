#include "ledger/history_entry.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kValueVersion = 1;
constexpr int64_t kLedgerMsMax = int64_t{1} << 62;  // base/time.h: the end of valid instants.

static_assert(kReasonBytesMax <= UINT16_MAX);

// What is wrong with an entry, or nullptr. Encoder and decoder share it, so that what can be
// written can be read back.
template <typename Entry>
const char* ProblemOf(const Entry& entry) {
  const auto reason = static_cast<uint8_t>(entry.reason);
  if (reason == 0 || reason >= kEndReasonCount || !IsKeptInHistory(entry.reason)) {
    return "reason is none that is kept";
  }
  if (entry.token_id.value == 0 || entry.token_id.value > INT64_MAX) {
    return "token_id is out of range";
  }
  if (entry.flow.value <= 0) return "flow is not positive";
  if (entry.session.value == 0) return "session is 0";
  if (entry.count == 0 || entry.count > kCountMax) return "count is out of range";
  if (entry.fence.value == 0) return "fence is 0";
  if (entry.ended_ms < 0 || entry.ended_ms > kLedgerMsMax) return "ended_ms is out of range";
  if (entry.issued_ms < 0 || entry.issued_ms > entry.ended_ms) {
    return "issued_ms is not between 0 and ended_ms";
  }
  if (entry.name_space.size() > kNamespaceBytesMax) return "namespace is too long";
  if (entry.client_id.size() > kClientIdBytesMax) return "client_id is too long";
  if (entry.note.size() > kReasonBytesMax) return "note is too long";
  if (!IsUtf8(entry.name_space)) return "namespace is not UTF-8";
  if (!IsUtf8(entry.client_id)) return "client_id is not UTF-8";
  if (!IsUtf8(entry.note)) return "note is not UTF-8";
  return nullptr;
}

Status Corrupt(std::string_view what, const std::string& problem) {
  return Status::Corruption(std::string(what) + ": " + problem);
}

template <typename Entry>
Result<Entry> ReadHistory(std::string_view key, std::string_view value) {
  const Result<uint64_t> sequence = DecodeHistoryKey(key);
  if (!sequence.ok()) return sequence.status();
  if (value.empty()) return Corrupt("history value", "has 0 bytes");
  ByteReader reader(value);
  const auto version = reader.Read<uint8_t>();
  if (version != kValueVersion) {
    return Corrupt("history value", "version is " + std::to_string(version) + " instead of " +
                                        std::to_string(kValueVersion));
  }
  Entry entry;
  entry.sequence = *sequence;
  entry.reason = static_cast<EndReason>(reader.Read<uint8_t>());
  entry.ended_ms = reader.Read<int64_t>();
  entry.token_id = TokenId(reader.Read<uint64_t>());
  entry.flow = FlowId(reader.Read<int64_t>());
  entry.session = SessionId(reader.Read<uint64_t>());
  entry.count = reader.Read<uint32_t>();
  entry.fence = Fence(reader.Read<uint64_t>());
  entry.issued_ms = reader.Read<int64_t>();
  entry.name_space = reader.ReadBytes(reader.Read<uint8_t>());
  entry.client_id = reader.ReadBytes(reader.Read<uint8_t>());
  entry.note = reader.ReadBytes(reader.Read<uint16_t>());
  if (!reader.Finished()) {
    return Corrupt("history value",
                   std::to_string(value.size()) + " bytes do not fit the lengths it states");
  }
  if (const char* problem = ProblemOf(entry)) return Corrupt("history value", problem);
  return entry;
}

}  // namespace

std::string EncodeHistoryKey(uint64_t sequence) {
  NOWCALLS_CHECK(sequence != 0);
  std::string out;
  AppendBigEndian(&out, sequence);
  return out;
}

Result<uint64_t> DecodeHistoryKey(std::string_view key) {
  if (key.size() != kHistoryKeyBytes) {
    return Corrupt("history key", "has " + std::to_string(key.size()) + " bytes instead of " +
                                      std::to_string(kHistoryKeyBytes));
  }
  const auto sequence = LoadBigEndian<uint64_t>(key.data());
  if (sequence == 0) return Corrupt("history key", "sequence is 0");
  return sequence;
}

std::string EncodeHistoryValue(const HistoryEntry& entry) {
  NOWCALLS_CHECK(ProblemOf(entry) == nullptr);
  std::string out;
  out.reserve(kHistoryFixedBytes + entry.name_space.size() + entry.client_id.size() +
              entry.note.size());
  AppendBigEndian(&out, kValueVersion);
  AppendBigEndian(&out, static_cast<uint8_t>(entry.reason));
  AppendBigEndian(&out, entry.ended_ms);
  AppendBigEndian(&out, entry.token_id.value);
  AppendBigEndian(&out, entry.flow.value);
  AppendBigEndian(&out, entry.session.value);
  AppendBigEndian(&out, entry.count);
  AppendBigEndian(&out, entry.fence.value);
  AppendBigEndian(&out, entry.issued_ms);
  AppendBigEndian(&out, static_cast<uint8_t>(entry.name_space.size()));
  out += entry.name_space;
  AppendBigEndian(&out, static_cast<uint8_t>(entry.client_id.size()));
  out += entry.client_id;
  AppendBigEndian(&out, static_cast<uint16_t>(entry.note.size()));
  out += entry.note;
  return out;
}

Status CheckHistory(std::string_view key, std::string_view value) {
  return ReadHistory<HistoryEntryOf<std::string_view>>(key, value).status();
}

Result<HistoryEntry> DecodeHistory(std::string_view key, std::string_view value) {
  return ReadHistory<HistoryEntry>(key, value);
}

}  // namespace nowcalls::ledger
