#include "ledger/commit_batch.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/prefetch.h"
#include "ledger/codec.h"
#include "ledger/namespace_codec.h"
#include "ledger/param_codec.h"
#include "ledger/rate_codec.h"
#include "ledger/record_types.h"

namespace nowcalls::ledger {
namespace {

// A batch that outgrew this frees its memory; others reuse theirs.
constexpr size_t kKeptBytesMax = 8 * 1024 * 1024;

constexpr size_t kPlaceBytes = 1 + kTokenKeyBytes;  // Family and key.
constexpr size_t kIssuedBytes = 1 + kPlaceBytes + kTokenValueBytes;
constexpr size_t kKeptBytes = 1 + kPlaceBytes + kPlaceBytes + kTokenValueBytes;
constexpr size_t kEndedBytes = 1 + kPlaceBytes + 1;
constexpr size_t kKeyedValueBytesMax = kTokenValueBytes + kParamCodedBytesMax;

// Token records are built on the stack and appended in one copy: grants and keeps are the hot path.
char* StorePlace(char* out, const TokenKey& key) {
  out = StoreBigEndian(out, static_cast<uint8_t>(key.family));
  EncodeTokenKey(key, out);
  return out + kTokenKeyBytes;
}

char* StoreType(char* out, RecordType type) {
  return StoreBigEndian(out, static_cast<uint8_t>(type));
}

// The value of a token with a parameter, behind its size.
char* StoreKeyedValue(const Token& token, const Param& param, char* out) {
  char* const value = out + sizeof(uint16_t);
  char* const end = EncodeKeyedTokenValue(token, param, value);
  StoreBigEndian(out, static_cast<uint16_t>(end - value));
  return end;
}

void AppendType(std::string* out, RecordType type) { *out += static_cast<char>(type); }

template <typename Size>
void AppendSized(std::string* out, std::string_view bytes) {
  // A text longer than its size field would be read back as another record: end the process.
  NOWCALLS_CHECK(bytes.size() <= static_cast<std::make_unsigned_t<Size>>(-1));
  AppendBigEndian(out, static_cast<Size>(bytes.size()));
  *out += bytes;
}

}  // namespace

void CommitBatch::TokenIssued(const Token& token) {
  if (!token.param.has_value()) return TokenIssued(token, nullptr);
  const Param param = token.param->view();
  TokenIssued(token, &param);
}

void CommitBatch::TokenIssued(const Token& token, const Param* param) {
  if (param != nullptr) {
    char record[1 + kPlaceBytes + sizeof(uint16_t) + kKeyedValueBytesMax];
    char* out = StorePlace(StoreType(record, RecordType::kKeyedTokenIssued), token.key);
    out = StoreKeyedValue(token, *param, out);
    return Append({record, out});
  }
  char record[kIssuedBytes];
  char* out = StorePlace(StoreType(record, RecordType::kTokenIssued), token.key);
  EncodeTokenValue(token, out);
  Append({record, sizeof(record)});
}

void CommitBatch::TokenKept(const TokenKey& before, const Token& after) {
  if (!after.param.has_value()) return TokenKept(before, after, nullptr);
  const Param param = after.param->view();
  TokenKept(before, after, &param);
}

void CommitBatch::TokenKept(const TokenKey& before, const Token& after, const Param* param) {
  NOWCALLS_CHECK(before.id == after.key.id);
  // A keep that moves no key changes nothing on disk: no record.
  if (before == after.key) return;
  if (param != nullptr) {
    char record[1 + 2 * kPlaceBytes + sizeof(uint16_t) + kKeyedValueBytesMax];
    char* out = StorePlace(StoreType(record, RecordType::kKeyedTokenKept), before);
    out = StoreKeyedValue(after, *param, StorePlace(out, after.key));
    return Append({record, out});
  }
  char record[kKeptBytes];
  char* out = StorePlace(StoreType(record, RecordType::kTokenKept), before);
  out = StorePlace(out, after.key);
  EncodeTokenValue(after, out);
  Append({record, sizeof(record)});
}

void CommitBatch::TokenEnded(const TokenKey& key, EndReason reason) {
  char record[kEndedBytes];
  char* out = StorePlace(StoreType(record, RecordType::kTokenEnded), key);
  StoreBigEndian(out, static_cast<uint8_t>(reason));
  Append({record, sizeof(record)});
}

void CommitBatch::SessionOpened(const Session& session) {
  std::string record;
  AppendType(&record, RecordType::kSessionOpened);
  record += EncodeSessionKey(session.id);
  AppendSized<uint16_t>(&record, EncodeSessionValue(session));
  Append(record);
}

void CommitBatch::SessionClosed(SessionId id) {
  std::string record;
  AppendType(&record, RecordType::kSessionClosed);
  record += EncodeSessionKey(id);
  Append(record);
}

void CommitBatch::RuleSet(const RuleEntry& rule, const RuleEntry* by_value) {
  std::string record;
  AppendType(&record, RecordType::kRuleSet);
  AppendSized<uint16_t>(&record, EncodeRuleKey(rule.name_space, rule.flow));
  AppendSized<uint32_t>(&record, by_value == nullptr ? EncodeRuleValue(rule.state, rule.json)
                                                     : EncodeRuleValue(rule, *by_value));
  Append(record);
}

void CommitBatch::RuleRemoved(std::string_view name_space, FlowId flow) {
  std::string record;
  AppendType(&record, RecordType::kRuleRemoved);
  AppendSized<uint16_t>(&record, EncodeRuleKey(name_space, flow));
  Append(record);
}

void CommitBatch::HistoryAdded(std::span<const HistoryEntry> block) {
  const std::string value = EncodeHistoryValue(block);
  std::string record;
  // A block of 256 entries with texts has tens of kilobytes: grow once.
  record.reserve(1 + kHistoryKeyBytes + sizeof(uint32_t) + value.size());
  AppendType(&record, RecordType::kHistoryAdded);
  record += EncodeHistoryKey(block.front().sequence);
  AppendSized<uint32_t>(&record, value);
  Append(record);
}

void CommitBatch::HistoryDropped(uint64_t first_sequence) {
  // Only the block's key: a block is dropped as a whole.
  std::string record;
  AppendType(&record, RecordType::kHistoryDropped);
  record += EncodeHistoryKey(first_sequence);
  Append(record);
}

void CommitBatch::NamespaceSet(const NamespaceEntry& entry) {
  std::string record;
  AppendType(&record, RecordType::kNamespaceSet);
  AppendSized<uint16_t>(&record, EncodeNamespaceKey(entry.name_space));
  AppendSized<uint16_t>(&record, EncodeNamespaceValue(entry.source));
  Append(record);
}

void CommitBatch::NamespaceRemoved(std::string_view name_space) {
  std::string record;
  AppendType(&record, RecordType::kNamespaceRemoved);
  AppendSized<uint16_t>(&record, EncodeNamespaceKey(name_space));
  Append(record);
}

void CommitBatch::RateSet(const RateBucket& bucket) {
  char record[1 + kRateKeyBytes + kRateValueBytes];
  char* out = StoreType(record, RecordType::kRateSet);
  EncodeRateKey(bucket.key, out);
  EncodeRateValue(bucket, out + kRateKeyBytes);
  Append({record, sizeof(record)});
}

void CommitBatch::RateDropped(const RateKey& key) {
  char record[1 + kRateKeyBytes];
  EncodeRateKey(key, StoreType(record, RecordType::kRateDropped));
  Append({record, sizeof(record)});
}

void CommitBatch::ClockMarked(const ClockMark& mark) {
  std::string record;
  AppendType(&record, RecordType::kClockMarked);
  record += EncodeClockMark(mark);
  Append(record);
}

void CommitBatch::FormatSet(const Format& format) {
  std::string record;
  AppendType(&record, RecordType::kFormatSet);
  record += EncodeFormat(format);
  Append(record);
}

void CommitBatch::WatermarkRaised(int64_t deadline_ms) {
  std::string record;
  AppendType(&record, RecordType::kWatermarkRaised);
  record += EncodeWatermark(deadline_ms);
  Append(record);
}

void CommitBatch::Sealed(const Seal& seal, uint64_t term) {
  std::string record;
  AppendType(&record, RecordType::kSealed);
  record += EncodeSeal(seal);
  Append(record);
  number_ = seal.batch_number;
  term_ = term;
  SealBytes(number_, term_, bytes_.data(), bytes_.size());
}

std::string_view CommitBatch::sealed_bytes() const {
  NOWCALLS_CHECK(sealed());
  return bytes_;
}

void CommitBatch::Clear() {
  bytes_.resize(kSealedBatchHeaderBytes);
  // resize() keeps the capacity. One huge batch must not hold its memory for good.
  if (bytes_.capacity() > kKeptBytesMax) bytes_.shrink_to_fit();
  records_ = 0;
  due_ = 0;
  number_ = 0;
  term_ = 0;
}

void CommitBatch::Append(std::string_view record) {
  NOWCALLS_CHECK(!sealed());
  // Another CPU committed the previous content and may own these cache lines: fetch them early.
  if (bytes_.size() + kPrefetchBytes < bytes_.capacity()) {
    PrefetchForWriting(bytes_.data() + bytes_.size() + kPrefetchBytes);
  }
  bytes_ += record;
  ++records_;
}

}  // namespace nowcalls::ledger
