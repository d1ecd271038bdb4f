// ApplyRecords: the reading half of commit_batch.h.
//
// Every record is decoded in full before its key reaches the sink, although CommitBatch checked it.
// Recovery has to read these bytes after a crash.
// Truncation needs no check of its own: reads past the end yield empty bytes, and decoders check
// sizes.
#include "base/bytes.h"
#include "ledger/codec.h"
#include "ledger/commit_batch.h"
#include "ledger/entity_table.h"
#include "ledger/record_types.h"

namespace nowcalls::ledger {
namespace {

class RecordReader {
 public:
  RecordReader(std::string_view records, KeyValueSink* sink) : in_(records), sink_(sink) {}

  Status ApplyAll() {
    while (!in_.rest().empty()) {
      if (sealed_) return Status::Corruption("bytes follow the seal");
      NOWCALLS_RETURN_IF_ERROR(ApplyOne(static_cast<RecordType>(in_.Read<uint8_t>())));
    }
    if (!sealed_) return Status::Corruption("the batch ends without a seal");
    return {};
  }

 private:
  struct Place {
    Family family;
    std::string_view key;
  };
  // Whether a record is that of a token with a parameter, whose value has a size of its own.
  enum class Keyed : bool { kNo, kYes };

  Status ApplyOne(RecordType type) {
    switch (type) {
      case RecordType::kTokenIssued: return TokenIssued(Keyed::kNo);
      case RecordType::kTokenKept: return TokenKept(Keyed::kNo);
      case RecordType::kTokenEnded: return TokenEnded();
      case RecordType::kKeyedTokenIssued: return TokenIssued(Keyed::kYes);
      case RecordType::kKeyedTokenKept: return TokenKept(Keyed::kYes);
      case RecordType::kSealed: sealed_ = true; break;
      default: break;
    }
    for (const EntityKind& kind : kEntityKinds) {
      if (kind.put == type) return Put(kind);
      if (kind.deleted == type) return Delete(kind);
    }
    // An unknown type ends the batch: without its layout the next record cannot be found.
    return Status::Corruption("record type " + std::to_string(static_cast<int>(type)) +
                              " is unknown");
  }

  Status Put(const EntityKind& kind) {
    const bool is_meta = kind.family == Family::kMeta;
    const std::string_view key = is_meta ? kind.meta_key : ReadField(kind.key);
    const std::string_view value = ReadField(kind.value);
    NOWCALLS_RETURN_IF_ERROR(kind.check({kind.family, key, value}));
    sink_->Put(kind.family, key, value);
    return {};
  }

  Status Delete(const EntityKind& kind) {
    const std::string_view key = ReadField(kind.key);
    NOWCALLS_RETURN_IF_ERROR(kind.check_key({kind.family, key, {}}));
    // A SingleDelete removes one put only: keys that are put again need Delete.
    if (IsPutOnce(kind.family)) {
      sink_->SingleDelete(kind.family, key);
    } else {
      sink_->Delete(kind.family, key);
    }
    return {};
  }

  // Layouts of tokens with and without a parameter have types of their own. The record type
  // therefore gives the size of the value.
  Status TokenIssued(Keyed keyed) {
    const Place place = ReadPlace();
    const std::string_view value = ReadTokenValue(keyed);
    const Result<TokenHead> token = CheckToken(place.family, place.key, value);
    if (!token.ok()) return token.status();
    NOWCALLS_RETURN_IF_ERROR(CheckKeyed(*token, keyed));
    sink_->Put(place.family, place.key, value);
    return {};
  }

  Status TokenKept(Keyed keyed) {
    const Place before = ReadPlace();
    const Place after = ReadPlace();
    const std::string_view value = ReadTokenValue(keyed);
    const Result<TokenKey> old_key = DecodeTokenKey(before.family, before.key);
    if (!old_key.ok()) return old_key.status();
    const Result<TokenHead> token = CheckToken(after.family, after.key, value);
    if (!token.ok()) return token.status();
    NOWCALLS_RETURN_IF_ERROR(CheckKeyed(*token, keyed));
    // Both keys change in one batch: no crash leaves the token twice or not at all. Equal keys
    // would put one key twice, and SingleDelete allows one put.
    if (old_key->id != token->key.id) return Status::Corruption("a kept token changes its id");
    if (*old_key == token->key) return Status::Corruption("a kept token does not move");
    sink_->SingleDelete(before.family, before.key);
    sink_->Put(after.family, after.key, value);
    return {};
  }

  Status TokenEnded() {
    const Place place = ReadPlace();
    const auto reason = in_.Read<uint8_t>();
    NOWCALLS_RETURN_IF_ERROR(DecodeTokenKey(place.family, place.key).status());
    // The reason changes no row. It is checked so that the batch stays readable elsewhere.
    if (reason == 0 || reason >= kEndReasonCount) {
      return Status::Corruption("end reason " + std::to_string(reason) + " is unknown");
    }
    sink_->SingleDelete(place.family, place.key);
    return {};
  }

  std::string_view ReadField(const Field& field) {
    if (field.bytes != 0) return in_.ReadBytes(field.bytes);
    return in_.ReadBytes(field.size_bytes == 2 ? in_.Read<uint16_t>() : in_.Read<uint32_t>());
  }

  std::string_view ReadTokenValue(Keyed keyed) {
    return in_.ReadBytes(keyed == Keyed::kYes ? in_.Read<uint16_t>() : kTokenValueBytes);
  }

  // A type that contradicts the value's own version byte is damage.
  static Status CheckKeyed(const TokenHead& token, Keyed keyed) {
    if (token.has_param == (keyed == Keyed::kYes)) return {};
    return Status::Corruption("the value of a token is not that of its record's type");
  }

  // Any number may come; the key's decoder rejects a family without tokens.
  Place ReadPlace() {
    const auto family = static_cast<Family>(in_.Read<uint8_t>());
    return {family, in_.ReadBytes(kTokenKeyBytes)};
  }

  ByteReader in_;
  KeyValueSink* sink_;
  bool sealed_ = false;
};

}  // namespace

Result<Seal> SealOf(const SealedBatch& batch) {
  constexpr size_t kRecordBytes = 1 + kSealBytes;
  const std::string_view records = batch.records();
  if (records.size() < kRecordBytes) return Status::Corruption("the batch ends without a seal");
  const std::string_view record = records.substr(records.size() - kRecordBytes);
  if (record.front() != static_cast<char>(RecordType::kSealed)) {
    return Status::Corruption("the batch ends without a seal");
  }
  return DecodeSeal(record.substr(1));
}

Status ApplyRecords(std::string_view records, KeyValueSink* sink) {
  return RecordReader(records, sink).ApplyAll();
}

}  // namespace nowcalls::ledger
