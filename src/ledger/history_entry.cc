#include "ledger/history_entry.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/time.h"
#include "base/utf8.h"
#include "ledger/entities.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kVersionOfOne = 1;
constexpr uint8_t kVersionOfMany = 2;

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
  if (entry.ended_ms < 0 || entry.ended_ms > kInstantMsMax) return "ended_ms is out of range";
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
Entry ReadEntry(ByteReader* reader) {
  Entry entry;
  entry.reason = static_cast<EndReason>(reader->Read<uint8_t>());
  entry.ended_ms = reader->Read<int64_t>();
  entry.token_id = TokenId(reader->Read<uint64_t>());
  entry.flow = FlowId(reader->Read<int64_t>());
  entry.session = SessionId(reader->Read<uint64_t>());
  entry.count = reader->Read<uint32_t>();
  entry.fence = Fence(reader->Read<uint64_t>());
  entry.issued_ms = reader->Read<int64_t>();
  entry.name_space = reader->ReadBytes(reader->Read<uint8_t>());
  entry.client_id = reader->ReadBytes(reader->Read<uint8_t>());
  entry.note = reader->ReadBytes(reader->Read<uint16_t>());
  return entry;
}

// How many entries follow. A single one has one layout only, so that what is read encodes to the
// same bytes again.
Result<size_t> ReadHead(ByteReader* reader) {
  if (reader->rest().empty()) return Corrupt("history value", "has 0 bytes");
  const auto version = reader->Read<uint8_t>();
  if (version == kVersionOfOne) return size_t{1};
  if (version != kVersionOfMany) {
    return Corrupt("history value", "version is " + std::to_string(version) + " instead of " +
                                        std::to_string(kVersionOfOne) + " or " +
                                        std::to_string(kVersionOfMany));
  }
  const auto entries = reader->Read<uint16_t>();
  if (reader->ok() && entries >= 2 && entries <= kHistoryBlockMax) return size_t{entries};
  return Corrupt("history value",
                 "number of entries is not between 2 and " + std::to_string(kHistoryBlockMax));
}

template <typename Entry, typename Take>
Status ReadHistory(std::string_view key, std::string_view value, Take take) {
  const Result<uint64_t> first = DecodeHistoryKey(key);
  if (!first.ok()) return first.status();
  ByteReader reader(value);
  const Result<size_t> entries = ReadHead(&reader);
  if (!entries.ok()) return entries.status();
  if (*first > kFenceMax - (*entries - 1)) return Corrupt("history key", "sequence is too great");
  for (size_t i = 0; i < *entries; ++i) {
    auto entry = ReadEntry<Entry>(&reader);
    if (!reader.ok() || (i + 1 == *entries && !reader.rest().empty())) {
      return Corrupt("history value",
                     std::to_string(value.size()) + " bytes do not fit the lengths it states");
    }
    entry.sequence = *first + i;
    if (const char* problem = ProblemOf(entry)) {
      const std::string which = "entry " + std::to_string(entry.sequence) + ": ";
      return Corrupt("history value", (*entries == 1 ? "" : which) + problem);
    }
    take(std::move(entry));
  }
  return {};
}

void AppendEntry(const HistoryEntry& entry, std::string* out) {
  NOWCALLS_CHECK(ProblemOf(entry) == nullptr);
  AppendBigEndian(out, static_cast<uint8_t>(entry.reason));
  AppendBigEndian(out, entry.ended_ms);
  AppendBigEndian(out, entry.token_id.value);
  AppendBigEndian(out, entry.flow.value);
  AppendBigEndian(out, entry.session.value);
  AppendBigEndian(out, entry.count);
  AppendBigEndian(out, entry.fence.value);
  AppendBigEndian(out, entry.issued_ms);
  AppendBigEndian(out, static_cast<uint8_t>(entry.name_space.size()));
  *out += entry.name_space;
  AppendBigEndian(out, static_cast<uint8_t>(entry.client_id.size()));
  *out += entry.client_id;
  AppendBigEndian(out, static_cast<uint16_t>(entry.note.size()));
  *out += entry.note;
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

std::string EncodeHistoryValue(std::span<const HistoryEntry> block) {
  NOWCALLS_CHECK(!block.empty() && block.size() <= kHistoryBlockMax);
  std::string out;
  size_t text_bytes = 0;
  for (const HistoryEntry& entry : block) {
    text_bytes += entry.name_space.size() + entry.client_id.size() + entry.note.size();
  }
  out.reserve(HistoryFixedBytes(block.size()) + text_bytes);
  AppendBigEndian(&out, block.size() == 1 ? kVersionOfOne : kVersionOfMany);
  if (block.size() > 1) AppendBigEndian(&out, static_cast<uint16_t>(block.size()));
  for (size_t i = 0; i < block.size(); ++i) {
    NOWCALLS_CHECK(block[i].sequence == block[0].sequence + i);
    AppendEntry(block[i], &out);
  }
  return out;
}

Status CheckHistory(std::string_view key, std::string_view value) {
  using View = HistoryEntryOf<std::string_view>;
  return ReadHistory<View>(key, value, [](View&&) {});
}

Result<HistoryBlock> DecodeHistory(std::string_view key, std::string_view value) {
  HistoryBlock block;
  NOWCALLS_RETURN_IF_ERROR(ReadHistory<HistoryEntry>(
      key, value, [&](HistoryEntry&& entry) { block.push_back(std::move(entry)); }));
  return block;
}

}  // namespace nowcalls::ledger
