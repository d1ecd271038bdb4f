// ApplyRecords: the reading half of commit_batch.h.
//
// Every record is decoded in full before its key reaches the sink, although CommitBatch checked it.
// Recovery has to read these bytes after a crash.
// Truncation needs no check of its own: reads past the end yield empty bytes, and decoders check
// sizes.
#include "base/bytes.h"
#include "ledger/codec.h"
#include "ledger/commit_batch.h"
#include "ledger/namespace_codec.h"
#include "ledger/rate_codec.h"
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

  // An unknown type ends the batch: without its layout the next record cannot be found.
  Status ApplyOne(RecordType type) {
    switch (type) {
      case RecordType::kTokenIssued: return TokenIssued(Keyed::kNo);
      case RecordType::kTokenKept: return TokenKept(Keyed::kNo);
      case RecordType::kTokenEnded: return TokenEnded();
      case RecordType::kSessionOpened: return SessionOpened();
      case RecordType::kSessionClosed: return SessionClosed();
      case RecordType::kRuleSet: return RuleSet();
      case RecordType::kRuleRemoved: return RuleRemoved();
      case RecordType::kNamespaceSet: return NamespaceSet();
      case RecordType::kNamespaceRemoved: return NamespaceRemoved();
      case RecordType::kClockMarked: return PutMeta(kClockKey, kClockMarkBytes, DecodeClockMark);
      case RecordType::kWatermarkRaised:
        return PutMeta(kWatermarkKey, kWatermarkBytes, DecodeWatermark);
      case RecordType::kFormatSet: return PutMeta(kFormatKey, kFormatBytes, DecodeFormat);
      case RecordType::kKeyedTokenIssued: return TokenIssued(Keyed::kYes);
      case RecordType::kKeyedTokenKept: return TokenKept(Keyed::kYes);
      case RecordType::kRateSet: return RateSet();
      case RecordType::kRateDropped: return RateDropped();
      case RecordType::kHistoryAdded: return HistoryAdded();
      case RecordType::kHistoryDropped: return HistoryDropped();
      case RecordType::kSealed: sealed_ = true; return PutMeta(kSealKey, kSealBytes, DecodeSeal);
    }
    return Status::Corruption("record type " + std::to_string(static_cast<int>(type)) +
                              " is unknown");
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

  Status SessionOpened() {
    const std::string_view key = in_.ReadBytes(kSessionKeyBytes);
    const std::string_view value = in_.ReadBytes(in_.Read<uint16_t>());
    NOWCALLS_RETURN_IF_ERROR(DecodeSession(key, value).status());
    sink_->Put(Family::kSessions, key, value);
    return {};
  }

  Status SessionClosed() {
    const std::string_view key = in_.ReadBytes(kSessionKeyBytes);
    NOWCALLS_RETURN_IF_ERROR(DecodeSessionKey(key).status());
    sink_->SingleDelete(Family::kSessions, key);
    return {};
  }

  Status RuleSet() {
    const std::string_view key = in_.ReadBytes(in_.Read<uint16_t>());
    const std::string_view value = in_.ReadBytes(in_.Read<uint32_t>());
    NOWCALLS_RETURN_IF_ERROR(DecodeRules(key, value).status());
    sink_->Put(Family::kRules, key, value);
    return {};
  }

  Status RuleRemoved() {
    const std::string_view key = in_.ReadBytes(in_.Read<uint16_t>());
    NOWCALLS_RETURN_IF_ERROR(DecodeRuleKey(key).status());
    // Rule keys are put again at each change, so Delete, not SingleDelete, must remove them.
    sink_->Delete(Family::kRules, key);
    return {};
  }

  Status HistoryAdded() {
    const std::string_view key = in_.ReadBytes(kHistoryKeyBytes);
    const std::string_view value = in_.ReadBytes(in_.Read<uint32_t>());
    // CheckHistory looks at views: a block may hold 256 entries with texts.
    NOWCALLS_RETURN_IF_ERROR(CheckHistory(key, value));
    sink_->Put(Family::kHistory, key, value);
    return {};
  }

  Status HistoryDropped() {
    const std::string_view key = in_.ReadBytes(kHistoryKeyBytes);
    NOWCALLS_RETURN_IF_ERROR(DecodeHistoryKey(key).status());
    sink_->SingleDelete(Family::kHistory, key);
    return {};
  }

  Status RateSet() {
    const std::string_view key = in_.ReadBytes(kRateKeyBytes);
    const std::string_view value = in_.ReadBytes(kRateValueBytes);
    NOWCALLS_RETURN_IF_ERROR(DecodeRate(key, value).status());
    sink_->Put(Family::kRates, key, value);
    return {};
  }

  Status RateDropped() {
    const std::string_view key = in_.ReadBytes(kRateKeyBytes);
    NOWCALLS_RETURN_IF_ERROR(DecodeRateKey(key).status());
    sink_->Delete(Family::kRates, key);
    return {};
  }

  Status NamespaceSet() {
    const std::string_view key = in_.ReadBytes(in_.Read<uint16_t>());
    const std::string_view value = in_.ReadBytes(in_.Read<uint16_t>());
    NOWCALLS_RETURN_IF_ERROR(DecodeNamespace(key, value).status());
    sink_->Put(Family::kRules, key, value);
    return {};
  }

  Status NamespaceRemoved() {
    const std::string_view key = in_.ReadBytes(in_.Read<uint16_t>());
    NOWCALLS_RETURN_IF_ERROR(DecodeNamespaceKey(key).status());
    sink_->Delete(Family::kRules, key);
    return {};
  }

  // Values of the meta family have a fixed size by record type; no record carries it.
  template <typename Decoder>
  Status PutMeta(std::string_view key, size_t value_bytes, Decoder decode) {
    const std::string_view value = in_.ReadBytes(value_bytes);
    NOWCALLS_RETURN_IF_ERROR(decode(value).status());
    sink_->Put(Family::kMeta, key, value);
    return {};
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

Status ApplyRecords(std::string_view records, KeyValueSink* sink) {
  return RecordReader(records, sink).ApplyAll();
}

}  // namespace nowcalls::ledger
