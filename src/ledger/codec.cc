#include "ledger/codec.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/time.h"
#include "base/utf8.h"
#include "ledger/param_codec.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kValueVersion = 1;
constexpr uint8_t kKeyedTokenVersion = 2;
constexpr uint8_t kInstanceSessionVersion = 2;
constexpr uint8_t kTwoRulesVersion = 2;
constexpr uint64_t kIdMax = INT64_MAX;

constexpr size_t kRuleFlowBytes = 8;

static_assert(kNamespaceBytesMax <= UINT8_MAX && kClientIdBytesMax <= UINT8_MAX);

bool IsLedgerMs(int64_t ms) { return ms >= 0 && ms <= kInstantMsMax; }
bool IsId(uint64_t id) { return id >= 1 && id <= kIdMax; }
bool IsSessionKind(SessionKind kind) {
  return kind >= SessionKind::kNamed && kind <= SessionKind::kSentinel;
}
bool IsRuleNamespace(std::string_view name_space) {
  return name_space.size() <= kNamespaceBytesMax && name_space.find('\0') == std::string_view::npos;
}

// ProblemOf says what is wrong with an entity, or nullptr. Encoders and decoders share it: all that
// is written can be read back.
const char* ProblemOf(const TokenKey& key) {
  if (!IsTokenFamily(key.family)) return "the family does not hold tokens";
  if (!IsLedgerMs(key.deadline_ms)) return "deadline_ms is out of range";
  if (!IsId(key.id.value)) return "token_id is out of range";
  return nullptr;
}

const char* ProblemOf(const Token& token) {
  if (token.flow.value <= 0) return "flow is not positive";
  if (token.session.value == 0) return "session is 0";
  if (token.count == 0 || token.count > kCountMax) return "count is out of range";
  if (token.issued_ms < 0 || token.issued_ms > token.key.deadline_ms) {
    return "issued_ms is not between 0 and the deadline";
  }
  if (token.fence.value == 0) return "fence is 0";
  return nullptr;
}

const char* ProblemOf(const Session& session) {
  if (session.id.value == 0) return "session is 0";
  if (!IsSessionKind(session.kind)) return "kind is unknown";
  if (!IsLedgerMs(session.opened_ms)) return "opened_ms is out of range";
  if (session.name_space.size() > kNamespaceBytesMax) return "namespace is too long";
  if (!IsUtf8(session.name_space)) return "namespace is not UTF-8";
  if (session.client_id.size() > kClientIdBytesMax) return "client_id is too long";
  if (!IsUtf8(session.client_id)) return "client_id is not UTF-8";
  if (session.instance > kIdMax) return "instance is out of range";
  if (session.instance != 0 && session.kind != SessionKind::kNamed) {
    return "a session of a connection has an instance";
  }
  return nullptr;
}

const char* ProblemOf(const ClockMark& mark) {
  if (!IsLedgerMs(mark.ledger_ms)) return "ledger_ms is out of range";
  if (!IsLedgerMs(mark.machine.boottime_ms)) return "boottime_ms is out of range";
  if (!IsLedgerMs(mark.machine.wall_ms)) return "wall_ms is out of range";
  return nullptr;
}

const char* ProblemOf(const Seal& seal) {
  if (seal.batch_number == 0) return "batch_number is 0";
  if (seal.next_fence == 0 || seal.next_fence > kFenceMax) return "next_fence is out of range";
  if (!IsLedgerMs(seal.ledger_ms)) return "ledger_ms is out of range";
  return nullptr;
}

Status Corrupt(std::string_view what, std::string_view problem) {
  return Status::Corruption(std::string(what) + ": " + std::string(problem));
}

Status WrongSize(std::string_view what, std::string_view bytes, size_t expected) {
  return Corrupt(what, "has " + std::to_string(bytes.size()) + " bytes instead of " +
                           std::to_string(expected));
}

Status WrongVersion(std::string_view what, uint8_t version, const char* expected = "1") {
  return Corrupt(what, "version is " + std::to_string(version) + " instead of " + expected);
}

// Inline, as is CheckVersion: millions of tokens a second pass both.
inline Status CheckSize(std::string_view what, std::string_view bytes, size_t expected) {
  return bytes.size() == expected ? Status() : WrongSize(what, bytes, expected);
}

inline Status CheckVersion(std::string_view what, uint8_t version) {
  return version == kValueVersion ? Status() : WrongVersion(what, version);
}

char* StoreTokenFields(const Token& token, uint8_t version, char* out) {
  NOWCALLS_CHECK(ProblemOf(token) == nullptr);
  out = StoreBigEndian(out, version);
  out = StoreBigEndian(out, token.flow.value);
  out = StoreBigEndian(out, token.session.value);
  out = StoreBigEndian(out, token.count);
  out = StoreBigEndian(out, token.issued_ms);
  out = StoreBigEndian(out, token.fence.value);
  return StoreBigEndian(out, token.request_id);
}

// Reads all of a token but its parameter, which stays a view into `value`. Inline, so that
// CheckToken makes no token.
[[gnu::always_inline]] inline Status ReadToken(Family family, std::string_view key,
                                               std::string_view value, Token* token,
                                               std::optional<Param>* param) {
  // Step 1: key and version. Version 1 has one size; version 2 adds a parameter.
  const Result<TokenKey> token_key = DecodeTokenKey(family, key);
  if (!token_key.ok()) return token_key.status();
  const bool keyed = !value.empty() && static_cast<uint8_t>(value[0]) == kKeyedTokenVersion;
  if (!keyed) {
    NOWCALLS_RETURN_IF_ERROR(CheckSize("token value", value, kTokenValueBytes));
    const auto version = static_cast<uint8_t>(value[0]);
    if (version != kValueVersion) return WrongVersion("token value", version, "1 or 2");
  } else if (value.size() < kTokenValueBytes + kParamHeadBytes) {
    return Corrupt("token value", "has only " + std::to_string(value.size()) + " bytes");
  }
  ByteReader reader(value.substr(1));
  // Step 2: the fixed fields, at the same offsets in both versions.
  token->key = *token_key;
  token->flow = FlowId(reader.Read<int64_t>());
  token->session = SessionId(reader.Read<uint64_t>());
  token->count = reader.Read<uint32_t>();
  token->issued_ms = reader.Read<int64_t>();
  token->fence = Fence(reader.Read<uint64_t>());
  token->request_id = reader.Read<uint64_t>();
  if (const char* problem = ProblemOf(*token)) return Corrupt("token value", problem);
  // Step 3: the parameter, which must end where the value ends.
  if (!keyed) return {};
  *param = ReadParam(&reader);
  if (!reader.Finished()) return Corrupt("token value", "its parameter is not as long as it says");
  if (const char* problem = ParamProblem(**param)) return Corrupt("token value", problem);
  return {};
}

// For values of a fixed size: the size and the version byte.
inline Status CheckFixedValue(std::string_view what, std::string_view bytes, size_t expected) {
  NOWCALLS_RETURN_IF_ERROR(CheckSize(what, bytes, expected));
  return CheckVersion(what, static_cast<uint8_t>(bytes[0]));
}

}  // namespace

void EncodeTokenKey(const TokenKey& key, char out[kTokenKeyBytes]) {
  NOWCALLS_CHECK(ProblemOf(key) == nullptr);
  // Big-endian, so that keys sort by deadline, then by id.
  out = StoreBigEndian(out, key.deadline_ms);
  StoreBigEndian(out, key.id.value);
}

Result<TokenKey> DecodeTokenKey(Family family, std::string_view bytes) {
  NOWCALLS_RETURN_IF_ERROR(CheckSize("token key", bytes, kTokenKeyBytes));
  ByteReader reader(bytes);
  TokenKey key;
  key.family = family;
  key.deadline_ms = reader.Read<int64_t>();
  key.id = TokenId(reader.Read<uint64_t>());
  if (const char* problem = ProblemOf(key)) return Corrupt("token key", problem);
  return key;
}

std::string TokenKeyLowerBound(int64_t deadline_ms) {
  char bytes[kTokenKeyBytes] = {};
  // Keys are unsigned: a negative deadline would sort behind all others.
  StoreBigEndian(bytes, std::max<int64_t>(deadline_ms, 0));
  return std::string(bytes, sizeof(bytes));
}

void EncodeTokenValue(const Token& token, char out[kTokenValueBytes]) {
  NOWCALLS_CHECK(!token.param.has_value());
  StoreTokenFields(token, kValueVersion, out);
}

char* EncodeKeyedTokenValue(const Token& token, const Param& param, char* out) {
  return StoreParam(param, StoreTokenFields(token, kKeyedTokenVersion, out));
}

std::string EncodeTokenValue(const Token& token) {
  char value[kTokenValueBytes + kParamCodedBytesMax];
  if (token.param.has_value()) {
    return {value, EncodeKeyedTokenValue(token, token.param->view(), value)};
  }
  EncodeTokenValue(token, value);
  return {value, kTokenValueBytes};
}

Result<Token> DecodeToken(Family family, std::string_view key, std::string_view value) {
  Token token;
  std::optional<Param> param;
  NOWCALLS_RETURN_IF_ERROR(ReadToken(family, key, value, &token, &param));
  if (param.has_value()) token.param.emplace(*param);
  return token;
}

Result<TokenHead> CheckToken(Family family, std::string_view key, std::string_view value) {
  Token token;
  std::optional<Param> param;
  NOWCALLS_RETURN_IF_ERROR(ReadToken(family, key, value, &token, &param));
  return TokenHead{token.key, param.has_value()};
}

std::string EncodeSessionKey(SessionId id) {
  NOWCALLS_CHECK(id.value != 0);
  std::string out;
  AppendBigEndian(&out, id.value);
  return out;
}

Result<SessionId> DecodeSessionKey(std::string_view key) {
  NOWCALLS_RETURN_IF_ERROR(CheckSize("session key", key, kSessionKeyBytes));
  const SessionId id(LoadBigEndian<uint64_t>(key.data()));
  if (id.value == 0) return Corrupt("session key", "session is 0");
  return id;
}

std::string EncodeSessionValue(const Session& session) {
  NOWCALLS_CHECK(ProblemOf(session) == nullptr);
  std::string out;
  AppendBigEndian(&out, session.instance == 0 ? kValueVersion : kInstanceSessionVersion);
  AppendBigEndian(&out, static_cast<uint8_t>(session.kind));
  AppendBigEndian(&out, session.opened_ms);
  AppendBigEndian(&out, static_cast<uint8_t>(session.name_space.size()));
  out += session.name_space;
  AppendBigEndian(&out, static_cast<uint8_t>(session.client_id.size()));
  out += session.client_id;
  if (session.instance != 0) AppendBigEndian(&out, session.instance);
  return out;
}

Result<Session> DecodeSession(std::string_view key, std::string_view value) {
  const Result<SessionId> id = DecodeSessionKey(key);
  if (!id.ok()) return id.status();
  if (value.empty()) return Corrupt("session value", "has 0 bytes");
  ByteReader reader(value);
  const auto version = reader.Read<uint8_t>();
  const bool has_instance = version == kInstanceSessionVersion;
  // Version 2 stands for an instance other than 0; anything else has version 1.
  if (version != kValueVersion && !has_instance) {
    return WrongVersion("session value", version, "1 or 2");
  }
  Session session;
  session.id = *id;
  session.kind = static_cast<SessionKind>(reader.Read<uint8_t>());
  session.opened_ms = reader.Read<int64_t>();
  session.name_space = reader.ReadBytes(reader.Read<uint8_t>());
  session.client_id = reader.ReadBytes(reader.Read<uint8_t>());
  if (has_instance) session.instance = reader.Read<uint64_t>();
  if (!reader.Finished()) {
    return Corrupt("session value",
                   std::to_string(value.size()) + " bytes do not fit the lengths it states");
  }
  if (const char* problem = ProblemOf(session)) return Corrupt("session value", problem);
  // The encoder uses version 1 for instance 0: one layout for each session.
  if (has_instance && session.instance == 0) return Corrupt("session value", "instance is 0");
  return session;
}

std::string EncodeRuleKey(std::string_view name_space, FlowId flow) {
  NOWCALLS_CHECK(IsRuleNamespace(name_space) && flow.value > 0);
  std::string out(name_space);
  out += '\0';
  AppendBigEndian(&out, flow.value);
  return out;
}

std::string EncodeRuleValue(RuleState state, std::string_view json) {
  NOWCALLS_CHECK(!json.empty());
  std::string out(1, static_cast<char>(kValueVersion));
  out += static_cast<char>(state);
  out += json;
  return out;
}

Result<RuleKey> DecodeRuleKey(std::string_view key) {
  const size_t name_bytes = key.find('\0');
  if (name_bytes == std::string_view::npos || key.size() - name_bytes != 1 + kRuleFlowBytes) {
    return Corrupt("rule key", "is not a namespace, a zero byte and 8 bytes of flow id");
  }
  RuleKey rule;
  rule.name_space = key.substr(0, name_bytes);
  rule.flow = FlowId(LoadBigEndian<int64_t>(key.data() + name_bytes + 1));
  if (!IsRuleNamespace(rule.name_space)) return Corrupt("rule key", "namespace is too long");
  if (rule.flow.value <= 0) return Corrupt("rule key", "flow is not positive");
  return rule;
}

std::string EncodeRuleValue(const RuleEntry& of_flow, const RuleEntry& by_value) {
  NOWCALLS_CHECK(of_flow.name_space == by_value.name_space && of_flow.flow == by_value.flow);
  // The rule of the flow comes first and has a size; the rule by value takes the rest.
  NOWCALLS_CHECK(!of_flow.json.empty() && !by_value.json.empty());
  std::string out(1, static_cast<char>(kTwoRulesVersion));
  out += static_cast<char>(of_flow.state);
  AppendBigEndian(&out, static_cast<uint32_t>(of_flow.json.size()));
  out += of_flow.json;
  out += static_cast<char>(by_value.state);
  out += by_value.json;
  return out;
}

Result<std::vector<RuleEntry>> DecodeRules(std::string_view key, std::string_view value) {
  constexpr size_t kSizedBytes = 1 + sizeof(uint32_t);  // State, and the size of what follows.
  // Step 1: key and version. No sound value has fewer than 3 bytes: version, state, JSON.
  const Result<RuleKey> rule_key = DecodeRuleKey(key);
  if (!rule_key.ok()) return rule_key.status();
  if (value.size() < 3) return Corrupt("rule value", "holds no JSON text");
  const auto version = static_cast<uint8_t>(value[0]);
  if (version != kValueVersion && version != kTwoRulesVersion) {
    return WrongVersion("rule value", version, "1 or 2");
  }
  std::vector<RuleEntry> rules;
  const auto add = [&](char state, std::string_view json) {
    rules.push_back({std::string(rule_key->name_space), rule_key->flow,
                     static_cast<RuleState>(state), std::string(json)});
  };
  std::string_view last = value.substr(1);
  // Step 2: of two rules, the first has a size; the last one takes the rest, as a lone rule does.
  if (version == kTwoRulesVersion) {
    if (last.size() < kSizedBytes) return Corrupt("rule value", "is too short for two rules");
    const auto size = LoadBigEndian<uint32_t>(last.data() + 1);
    if (last.size() - kSizedBytes < size_t{size} + 1) {
      return Corrupt("rule value", "is too short for the size it states");
    }
    add(last[0], last.substr(kSizedBytes, size));
    last.remove_prefix(kSizedBytes + size);
  }
  add(last[0], last.substr(1));
  // Step 3: both rules are checked alike.
  for (const RuleEntry& rule : rules) {
    if (rule.json.empty()) return Corrupt("rule value", "holds no JSON text");
    if (rule.state != RuleState::kActive && rule.state != RuleState::kRemoved &&
        rule.state != RuleState::kDraining) {
      return Corrupt("rule value", "state is none of active, removed and draining");
    }
  }
  return rules;
}

std::string EncodeFormat(const Format& format) {
  std::string out;
  AppendBigEndian(&out, format.version);
  AppendBigEndian(&out, format.token_id_key[0]);
  AppendBigEndian(&out, format.token_id_key[1]);
  AppendBigEndian(&out, format.created_wall_ms);
  return out;
}

Result<Format> DecodeFormat(std::string_view value) {
  ByteReader reader(value);
  Format format;
  format.version = reader.Read<uint32_t>();
  if (!reader.ok()) return Corrupt("format record", "is too short to hold a version");
  // The version comes before the size: a later version may have another size, and the operator
  // needs the version's message.
  if (format.version < kFormatVersionMin || format.version > kFormatVersion) {
    return Status::FailedPrecondition(
        "the ledger has format version " + std::to_string(format.version) +
        ", this program reads only versions " + std::to_string(kFormatVersionMin) + " to " +
        std::to_string(kFormatVersion) +
        ": run the nowcalls release that wrote it, or choose another data directory");
  }
  NOWCALLS_RETURN_IF_ERROR(CheckSize("format record", value, kFormatBytes));
  format.token_id_key[0] = reader.Read<uint64_t>();
  format.token_id_key[1] = reader.Read<uint64_t>();
  format.created_wall_ms = reader.Read<int64_t>();
  return format;
}

std::string EncodeClockMark(const ClockMark& mark) {
  NOWCALLS_CHECK(ProblemOf(mark) == nullptr);
  std::string out;
  out.reserve(kClockMarkBytes);
  AppendBigEndian(&out, kValueVersion);
  AppendBigEndian(&out, mark.ledger_ms);
  AppendBigEndian(&out, mark.machine.boottime_ms);
  AppendBigEndian(&out, mark.machine.wall_ms);
  // The boot id tells whether the next start is on the same boot.
  for (const uint8_t byte : mark.machine.boot_id) out += static_cast<char>(byte);
  return out;
}

Result<ClockMark> DecodeClockMark(std::string_view value) {
  NOWCALLS_RETURN_IF_ERROR(CheckFixedValue("clock mark", value, kClockMarkBytes));
  ByteReader reader(value.substr(1));
  ClockMark mark;
  mark.ledger_ms = reader.Read<int64_t>();
  mark.machine.boottime_ms = reader.Read<int64_t>();
  mark.machine.wall_ms = reader.Read<int64_t>();
  for (uint8_t& byte : mark.machine.boot_id) byte = reader.Read<uint8_t>();
  if (const char* problem = ProblemOf(mark)) return Corrupt("clock mark", problem);
  return mark;
}

std::string EncodeSeal(const Seal& seal) {
  NOWCALLS_CHECK(ProblemOf(seal) == nullptr);
  std::string out;
  out.reserve(kSealBytes);
  AppendBigEndian(&out, kValueVersion);
  AppendBigEndian(&out, seal.batch_number);
  AppendBigEndian(&out, seal.next_fence);
  AppendBigEndian(&out, seal.ledger_ms);
  AppendBigEndian(&out, seal.live_tokens);
  AppendBigEndian(&out, seal.live_count_sum);
  AppendBigEndian(&out, seal.live_fence_sum);
  return out;
}

std::string EncodeLogData(uint64_t batch_number) {
  // The end byte is not zero: zeros behind it in a log are no part of the data.
  constexpr uint8_t kEnd = 0x01;
  std::string out;
  AppendBigEndian(&out, kValueVersion);
  AppendBigEndian(&out, batch_number);
  AppendBigEndian(&out, kEnd);
  return out;
}

std::optional<uint64_t> DecodeLogData(std::string_view bytes) {
  if (bytes.size() != kLogDataBytes || bytes.front() != static_cast<char>(kValueVersion)) return {};
  const auto number = LoadBigEndian<uint64_t>(bytes.data() + 1);
  // Encoding the number again compares the version and the end byte as well.
  return bytes == EncodeLogData(number) ? std::optional(number) : std::nullopt;
}

Result<Seal> DecodeSeal(std::string_view value) {
  NOWCALLS_RETURN_IF_ERROR(CheckFixedValue("seal", value, kSealBytes));
  ByteReader reader(value.substr(1));
  Seal seal;
  seal.batch_number = reader.Read<uint64_t>();
  seal.next_fence = reader.Read<uint64_t>();
  seal.ledger_ms = reader.Read<int64_t>();
  seal.live_tokens = reader.Read<uint64_t>();
  seal.live_count_sum = reader.Read<uint64_t>();
  seal.live_fence_sum = reader.Read<uint64_t>();
  if (const char* problem = ProblemOf(seal)) return Corrupt("seal", problem);
  return seal;
}

std::string EncodeWatermark(int64_t deadline_ms) {
  NOWCALLS_CHECK(IsLedgerMs(deadline_ms));
  std::string out;
  AppendBigEndian(&out, kValueVersion);
  AppendBigEndian(&out, deadline_ms);
  return out;
}

Result<Watermark> DecodeWatermark(std::string_view value) {
  NOWCALLS_RETURN_IF_ERROR(CheckFixedValue("watermark", value, kWatermarkBytes));
  const auto deadline_ms = LoadBigEndian<int64_t>(value.data() + 1);
  if (!IsLedgerMs(deadline_ms)) return Corrupt("watermark", "deadline_ms is out of range");
  return Watermark{deadline_ms};
}

}  // namespace nowcalls::ledger
