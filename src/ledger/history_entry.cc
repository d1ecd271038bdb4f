#include "ledger/history_entry.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/time.h"
#include "base/utf8.h"
#include "ledger/entities.h"
#include "ledger/param_codec.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kVersionOfOne = 1;
constexpr uint8_t kVersionOfMany = 2;
constexpr uint8_t kVersionWithParams = 3;  // Of one or many.
constexpr uint8_t kVersionWithMarks = 4;   // Likewise.

// The marked fields follow an entry of kVersionWithMarks in this order.
constexpr uint8_t kMarkParam = 1;
constexpr uint8_t kMarkInstance = 2;
constexpr uint8_t kMarkOutcome = 4;
constexpr uint8_t kMarksKnown = kMarkParam | kMarkInstance | kMarkOutcome;

static_assert(kReasonBytesMax <= UINT16_MAX);

// Says what is wrong with an entry, or nullptr. Encoder and decoder share it: all that is written
// can be read back.
template <typename Entry>
const char* ProblemOf(const Entry& entry) {
  const auto reason = static_cast<uint8_t>(entry.reason);
  if (static_cast<uint8_t>(entry.outcome) >= kCallOutcomeCount) return "outcome is unknown";
  if (reason == 0 || reason >= kEndReasonCount || !IsKeptInHistory(entry.reason, entry.outcome)) {
    return "reason is none that is kept";
  }
  // Only a release carries the outcome of a call.
  if (entry.outcome != CallOutcome::kOk && entry.reason != EndReason::kReleased &&
      entry.reason != EndReason::kReleasedLate) {
    return "outcome is of no release";
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
  if (entry.instance > INT64_MAX) return "instance is out of range";
  if (!entry.param.has_value()) return nullptr;
  const Param param{entry.param->type, entry.param->bytes};
  return ParamProblem(param);
}

// Instance and outcome exist in kVersionWithMarks alone.
template <typename Entry>
bool NeedsMarks(const Entry& entry) {
  return entry.instance != 0 || entry.outcome != CallOutcome::kOk;
}

bool HasParam(const HistoryEntry& entry) { return entry.param.has_value(); }

uint8_t MarksOf(const HistoryEntry& entry) {
  return static_cast<uint8_t>((HasParam(entry) ? kMarkParam : 0) |
                              (entry.instance != 0 ? kMarkInstance : 0) |
                              (entry.outcome != CallOutcome::kOk ? kMarkOutcome : 0));
}

// Takes the oldest layout that holds the block, so that earlier servers read as much as they can.
uint8_t VersionOf(std::span<const HistoryEntry> block) {
  if (std::any_of(block.begin(), block.end(), NeedsMarks<HistoryEntry>)) return kVersionWithMarks;
  if (std::any_of(block.begin(), block.end(), HasParam)) return kVersionWithParams;
  return block.size() == 1 ? kVersionOfOne : kVersionOfMany;
}

Status Corrupt(std::string_view what, const std::string& problem) {
  return Status::Corruption(std::string(what) + ": " + problem);
}

template <typename Entry>
void ReadParamOf(Entry* entry, ByteReader* reader) {
  // One byte peeked: kNoParamType stands in place of a parameter's type.
  if (reader->rest().starts_with(static_cast<char>(kNoParamType))) {
    reader->ReadBytes(1);
  } else {
    entry->param.emplace(ReadParam(reader));
  }
}

// False: unknown mark, or a mark of a default value. Both would not encode to the same bytes again.
template <typename Entry>
bool ReadMarked(Entry* entry, ByteReader* reader) {
  const auto marks = reader->Read<uint8_t>();
  if ((marks & ~kMarksKnown) != 0) return false;
  if ((marks & kMarkParam) != 0) entry->param.emplace(ReadParam(reader));
  if ((marks & kMarkInstance) != 0) entry->instance = reader->Read<uint64_t>();
  if ((marks & kMarkOutcome) != 0)
    entry->outcome = static_cast<CallOutcome>(reader->Read<uint8_t>());
  if (!reader->ok()) return true;  // The caller reports truncation.
  return ((marks & kMarkInstance) == 0 || entry->instance != 0) &&
         ((marks & kMarkOutcome) == 0 || entry->outcome != CallOutcome::kOk);
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

struct Head {
  uint8_t version;
  size_t entries;
};

// A block has exactly one valid layout: decoded blocks encode to the same bytes.
Result<Head> ReadHead(ByteReader* reader) {
  if (reader->rest().empty()) return Corrupt("history value", "has 0 bytes");
  const auto version = reader->Read<uint8_t>();
  if (version == kVersionOfOne) return Head{version, 1};
  if (version < kVersionOfMany || version > kVersionWithMarks) {
    return Corrupt("history value",
                   "version is " + std::to_string(version) + " instead of 1, 2, 3 or 4");
  }
  const auto entries = reader->Read<uint16_t>();
  // One entry alone has version 1, unless it has a parameter or marks.
  const size_t least = version == kVersionOfMany ? 2 : 1;
  if (reader->ok() && entries >= least && entries <= kHistoryBlockMax) {
    return Head{version, entries};
  }
  return Corrupt("history value", "number of entries is not between " + std::to_string(least) +
                                      " and " + std::to_string(kHistoryBlockMax));
}

// Step 1: key and head, which give the sequences and the number of entries.
// Step 2: each entry with what its version adds; `take` gets it only after it was checked.
// Step 3: the version must be needed, or the block would have a second valid layout.
template <typename Entry, typename Take>
Status ReadHistory(std::string_view key, std::string_view value, Take take) {
  const Result<uint64_t> first = DecodeHistoryKey(key);
  if (!first.ok()) return first.status();
  ByteReader reader(value);
  const Result<Head> head = ReadHead(&reader);
  if (!head.ok()) return head.status();
  const size_t entries = head->entries;
  // The last sequence of the block must stay in range as well.
  if (*first > kFenceMax - (entries - 1)) return Corrupt("history key", "sequence is too great");
  bool has_param = false;
  bool needs_marks = false;
  for (size_t i = 0; i < entries; ++i) {
    auto entry = ReadEntry<Entry>(&reader);
    if (head->version == kVersionWithParams) ReadParamOf(&entry, &reader);
    if (head->version == kVersionWithMarks && !ReadMarked(&entry, &reader)) {
      return Corrupt("history value", "an entry has a mark that is not known, or of nothing");
    }
    // Lengths are checked before values: past the end, fields read as zero and would be
    // misreported.
    if (!reader.ok() || (i + 1 == entries && !reader.rest().empty())) {
      return Corrupt("history value",
                     std::to_string(value.size()) + " bytes do not fit the lengths it states");
    }
    entry.sequence = *first + i;
    if (const char* problem = ProblemOf(entry)) {
      const std::string which = "entry " + std::to_string(entry.sequence) + ": ";
      return Corrupt("history value", (entries == 1 ? "" : which) + problem);
    }
    has_param = has_param || entry.param.has_value();
    needs_marks = needs_marks || NeedsMarks(entry);
    take(std::move(entry));
  }
  // A newer layout without a use for it was not written by the encoder.
  if (head->version == kVersionWithParams && !has_param) {
    return Corrupt("history value", "no entry has a parameter, but the version says so");
  }
  if (head->version == kVersionWithMarks && !needs_marks) {
    return Corrupt("history value", "no entry needs marks, but the version says so");
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

void AppendParamOf(const HistoryEntry& entry, std::string* out) {
  if (entry.param.has_value()) {
    AppendParam(entry.param->view(), out);
  } else {
    AppendBigEndian(out, kNoParamType);
  }
}

void AppendMarked(const HistoryEntry& entry, std::string* out) {
  AppendBigEndian(out, MarksOf(entry));
  if (HasParam(entry)) AppendParam(entry.param->view(), out);
  if (entry.instance != 0) AppendBigEndian(out, entry.instance);
  if (entry.outcome != CallOutcome::kOk) {
    AppendBigEndian(out, static_cast<uint8_t>(entry.outcome));
  }
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

size_t HistoryTextBytes(const HistoryEntry& entry) {
  const size_t param_bytes = HasParam(entry) ? ParamCodedBytes(entry.param->view()) : 0;
  const size_t instance_bytes = entry.instance != 0 ? sizeof(entry.instance) : 0;
  const size_t outcome_bytes = entry.outcome != CallOutcome::kOk ? 1 : 0;
  return entry.name_space.size() + entry.client_id.size() + entry.note.size() + param_bytes +
         instance_bytes + outcome_bytes;
}

std::string EncodeHistoryValue(std::span<const HistoryEntry> block) {
  NOWCALLS_CHECK(!block.empty() && block.size() <= kHistoryBlockMax);
  const uint8_t version = VersionOf(block);
  std::string out;
  // Size first, so that a block of 256 entries allocates once.
  size_t text_bytes = 0;
  for (const HistoryEntry& entry : block) text_bytes += HistoryTextBytes(entry);
  out.reserve(HistoryFixedBytes(block.size()) + text_bytes);
  AppendBigEndian(&out, version);
  if (version != kVersionOfOne) AppendBigEndian(&out, static_cast<uint16_t>(block.size()));
  for (size_t i = 0; i < block.size(); ++i) {
    // The value stores no sequences: entry i has that of the key plus i.
    NOWCALLS_CHECK(block[i].sequence == block[0].sequence + i);
    AppendEntry(block[i], &out);
    if (version == kVersionWithParams) AppendParamOf(block[i], &out);
    if (version == kVersionWithMarks) AppendMarked(block[i], &out);
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
