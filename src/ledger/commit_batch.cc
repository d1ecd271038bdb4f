#include "ledger/commit_batch.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/prefetch.h"
#include "ledger/codec.h"
#include "ledger/entity_table.h"
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

void AppendField(const Field& field, std::string_view bytes, std::string* out) {
  // Another size would be read back as another record: end the process.
  NOWCALLS_CHECK(field.bytes != 0 ? bytes.size() == field.bytes
                                  : bytes.size() < uint64_t{1} << (8 * field.size_bytes));
  if (field.size_bytes == 2) AppendBigEndian(out, static_cast<uint16_t>(bytes.size()));
  if (field.size_bytes == 4) AppendBigEndian(out, static_cast<uint32_t>(bytes.size()));
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
  Put(KindOf<Session>(), EncodeSessionKey(session.id), EncodeSessionValue(session));
}

void CommitBatch::SessionClosed(SessionId id) { Delete(KindOf<Session>(), EncodeSessionKey(id)); }

void CommitBatch::RuleSet(const RuleEntry& rule, const RuleEntry* by_value) {
  Put(KindOf<RuleEntry>(), EncodeRuleKey(rule.name_space, rule.flow),
      by_value == nullptr ? EncodeRuleValue(rule.state, rule.json)
                          : EncodeRuleValue(rule, *by_value));
}

void CommitBatch::RuleRemoved(std::string_view name_space, FlowId flow) {
  Delete(KindOf<RuleEntry>(), EncodeRuleKey(name_space, flow));
}

void CommitBatch::HistoryAdded(std::span<const HistoryEntry> block) {
  Put(KindOf<HistoryBlock>(), EncodeHistoryKey(block.front().sequence), EncodeHistoryValue(block));
}

void CommitBatch::HistoryDropped(uint64_t first_sequence) {
  Delete(KindOf<HistoryBlock>(), EncodeHistoryKey(first_sequence));
}

void CommitBatch::NamespaceSet(const NamespaceEntry& entry) {
  Put(KindOf<NamespaceEntry>(), EncodeNamespaceKey(entry.name_space),
      EncodeNamespaceValue(entry.source));
}

void CommitBatch::NamespaceRemoved(std::string_view name_space) {
  Delete(KindOf<NamespaceEntry>(), EncodeNamespaceKey(name_space));
}

void CommitBatch::RateSet(const RateBucket& bucket) {
  char key[kRateKeyBytes];
  char value[kRateValueBytes];
  EncodeRateKey(bucket.key, key);
  EncodeRateValue(bucket, value);
  Put(KindOf<RateBucket>(), {key, sizeof(key)}, {value, sizeof(value)});
}

void CommitBatch::RateDropped(const RateKey& key) {
  char bytes[kRateKeyBytes];
  EncodeRateKey(key, bytes);
  Delete(KindOf<RateBucket>(), {bytes, sizeof(bytes)});
}

void CommitBatch::ClockMarked(const ClockMark& mark) {
  Put(KindOf<ClockMark>(), {}, EncodeClockMark(mark));
}

void CommitBatch::FormatSet(const Format& format) {
  Put(KindOf<Format>(), {}, EncodeFormat(format));
}

void CommitBatch::WatermarkRaised(int64_t deadline_ms) {
  Put(KindOf<Watermark>(), {}, EncodeWatermark(deadline_ms));
}

void CommitBatch::Sealed(const Seal& seal, uint64_t term) {
  Put(KindOf<Seal>(), {}, EncodeSeal(seal));
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

// In the layout of `kind`. `key`: empty for kMeta.
void CommitBatch::Put(const EntityKind& kind, std::string_view key, std::string_view value) {
  Begin(*kind.put);
  AppendField(kind.key, key, &bytes_);
  AppendField(kind.value, value, &bytes_);
}

void CommitBatch::Delete(const EntityKind& kind, std::string_view key) {
  Begin(*kind.deleted);
  AppendField(kind.key, key, &bytes_);
}

void CommitBatch::Begin(RecordType type) {
  const char byte = static_cast<char>(type);
  Append({&byte, 1});
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
