// Encoders and decoders of src/ledger/codec.h against the golden bytes, and against everything that
// is nearly right.
#include "ledger/codec.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "base/hex.h"
#include "base/prng.h"
#include "support/golden.h"
#include "unit/ledger/samples.h"

namespace nowcalls::ledger {
namespace {

using nowcalls::testing::GoldenPath;
using nowcalls::testing::LoadGolden;

const std::map<std::string, std::string>& Golden() {
  static const std::map<std::string, std::string> vectors =
      LoadGolden(GoldenPath("ledger_values.hex"));
  return vectors;
}

std::string TokenKeyBytes(const TokenKey& key) {
  std::string bytes(kTokenKeyBytes, '\0');
  EncodeTokenKey(key, bytes.data());
  return bytes;
}

std::string TokenValueBytes(const Token& token) {
  std::string bytes(kTokenValueBytes, '\0');
  EncodeTokenValue(token, bytes.data());
  return bytes;
}

Token GreatestToken() {
  Token token;
  token.key = {Family::kTokensLong, int64_t{1} << 62, TokenId(INT64_MAX)};
  token.flow = FlowId(INT64_MAX);
  token.session = SessionId(UINT64_MAX);
  token.count = INT32_MAX;
  token.issued_ms = token.key.deadline_ms;
  token.fence = Fence(UINT64_MAX);
  token.request_id = UINT64_MAX;
  return token;
}

// Decodes the bytes and encodes them again; empty when they are refused.
using Recode = std::function<std::string(std::string_view)>;

Recode RecodeOf(const std::string& name) {
  const std::string& token_key = Golden().at("token_key");
  const std::string& session_key = Golden().at("session_key");
  const std::string& rule_key = Golden().at("rule_key");
  if (name == "token_key") {
    return [](std::string_view b) {
      const auto key = DecodeTokenKey(Family::kTokensShort, b);
      return key.ok() ? TokenKeyBytes(*key) : std::string();
    };
  }
  if (name == "token_value" || name == "token_value_keyed") {
    return [&](std::string_view b) {
      const auto token = DecodeToken(Family::kTokensShort, token_key, b);
      return token.ok() ? EncodeTokenValue(*token) : std::string();
    };
  }
  if (name == "session_key") {
    return [](std::string_view b) {
      const auto id = DecodeSessionKey(b);
      return id.ok() ? EncodeSessionKey(*id) : std::string();
    };
  }
  if (name == "session_value" || name == "session_value_instance") {
    return [&](std::string_view b) {
      const auto session = DecodeSession(session_key, b);
      return session.ok() ? EncodeSessionValue(*session) : std::string();
    };
  }
  if (name == "rule_key") {
    return [](std::string_view b) {
      const auto key = DecodeRuleKey(b);
      return key.ok() ? EncodeRuleKey(key->name_space, key->flow) : std::string();
    };
  }
  if (name == "rule_value") {
    return [&](std::string_view b) {
      const auto rules = DecodeRules(rule_key, b);
      if (!rules.ok()) return std::string();
      if (rules->size() == 2) return EncodeRuleValue((*rules)[0], (*rules)[1]);
      return EncodeRuleValue((*rules)[0].state, (*rules)[0].json);
    };
  }
  return {};
}

Recode RecodeOfMeta(const std::string& name) {
  if (name == "format") {
    return [](std::string_view b) {
      const auto format = DecodeFormat(b);
      return format.ok() ? EncodeFormat(*format) : std::string();
    };
  }
  if (name == "clock") {
    return [](std::string_view b) {
      const auto mark = DecodeClockMark(b);
      return mark.ok() ? EncodeClockMark(*mark) : std::string();
    };
  }
  if (name == "seal") {
    return [](std::string_view b) {
      const auto seal = DecodeSeal(b);
      return seal.ok() ? EncodeSeal(*seal) : std::string();
    };
  }
  return [](std::string_view b) {
    const auto watermark = DecodeWatermark(b);
    return watermark.ok() ? EncodeWatermark(watermark->deadline_ms) : std::string();
  };
}

const std::vector<std::string>& Kinds() {
  static const std::vector<std::string> kinds = {
      "token_key",     "token_value", "token_value_keyed", "session_key",
      "session_value", "rule_key",    "rule_value",        "format",
      "clock",         "seal",        "watermark",         "session_value_instance"};
  return kinds;
}

Recode RecoderFor(const std::string& name) {
  Recode recode = RecodeOf(name);
  return recode ? recode : RecodeOfMeta(name);
}

TEST_CASE("every entity has exactly its golden bytes") {
  CHECK(ToHex(TokenKeyBytes(SampleToken().key)) == ToHex(Golden().at("token_key")));
  CHECK(ToHex(TokenValueBytes(SampleToken())) == ToHex(Golden().at("token_value")));
  CHECK(ToHex(EncodeTokenValue(SampleKeyedToken())) == ToHex(Golden().at("token_value_keyed")));
  CHECK(ToHex(TokenKeyBytes(GreatestToken().key)) == ToHex(Golden().at("token_key_max")));
  CHECK(ToHex(TokenValueBytes(GreatestToken())) == ToHex(Golden().at("token_value_max")));
  CHECK(ToHex(EncodeSessionKey(SessionId(42))) == ToHex(Golden().at("session_key")));
  CHECK(ToHex(EncodeSessionValue(SampleSession())) == ToHex(Golden().at("session_value")));
  CHECK(ToHex(EncodeSessionValue(SampleSessionOfInstance())) ==
        ToHex(Golden().at("session_value_instance")));
  const Session connection{SessionId(44), SessionKind::kConnection, kSampleMs, "default",
                           "@10.0.0.8:51312"};
  CHECK(ToHex(EncodeSessionValue(connection)) == ToHex(Golden().at("session_value_connection")));
  Session sentinel = connection;
  sentinel.kind = SessionKind::kSentinel;
  CHECK(ToHex(EncodeSessionValue(sentinel)) == ToHex(Golden().at("session_value_sentinel")));
  const Session nameless{SessionId(1), SessionKind::kConnection, 0, "", ""};
  CHECK(ToHex(EncodeSessionValue(nameless)) == ToHex(Golden().at("session_value_empty_names")));
  CHECK(ToHex(EncodeRuleKey("orders", FlowId(1001))) == ToHex(Golden().at("rule_key")));
  CHECK(ToHex(EncodeRuleValue(RuleState::kActive, kSampleJson)) ==
        ToHex(Golden().at("rule_value")));
  CHECK(ToHex(EncodeRuleValue(RuleState::kDraining, kSampleJson)) ==
        ToHex(Golden().at("rule_value_draining")));
  CHECK(ToHex(EncodeRuleValue(SampleRule(), SampleRuleByValue())) ==
        ToHex(Golden().at("rule_value_two")));
  CHECK(ToHex(EncodeFormat(SampleFormat())) == ToHex(Golden().at("format")));
  CHECK(ToHex(EncodeClockMark(SampleClockMark())) == ToHex(Golden().at("clock")));
  CHECK(ToHex(EncodeSeal(SampleSeal())) == ToHex(Golden().at("seal")));
  CHECK(ToHex(EncodeWatermark(kSampleMs + 4000)) == ToHex(Golden().at("watermark")));
  CHECK(ToHex(EncodeLogData(3)) == ToHex(Golden().at("log_data")));
}

TEST_CASE("golden bytes decode to the entities they were made from") {
  const auto token =
      DecodeToken(Family::kTokensShort, Golden().at("token_key"), Golden().at("token_value"));
  REQUIRE(token.ok());
  CHECK(*token == SampleToken());
  const auto keyed =
      DecodeToken(Family::kTokensShort, Golden().at("token_key"), Golden().at("token_value_keyed"));
  REQUIRE(keyed.ok());
  CHECK(*keyed == SampleKeyedToken());
  const auto greatest = DecodeToken(Family::kTokensLong, Golden().at("token_key_max"),
                                    Golden().at("token_value_max"));
  REQUIRE(greatest.ok());
  CHECK(*greatest == GreatestToken());
  const auto session = DecodeSession(Golden().at("session_key"), Golden().at("session_value"));
  REQUIRE(session.ok());
  CHECK(*session == SampleSession());
  CHECK(*DecodeSession(Golden().at("session_key"), Golden().at("session_value_instance")) ==
        SampleSessionOfInstance());
  const auto rules = DecodeRules(Golden().at("rule_key"), Golden().at("rule_value"));
  REQUIRE(rules.ok());
  CHECK(*rules == std::vector{SampleRule()});
  CHECK(DecodeRules(Golden().at("rule_key"), Golden().at("rule_value_draining"))->at(0).state ==
        RuleState::kDraining);
  const auto two = DecodeRules(Golden().at("rule_key"), Golden().at("rule_value_two"));
  REQUIRE(two.ok());
  CHECK(*two == std::vector{SampleRule(), SampleRuleByValue()});
  const auto format = DecodeFormat(Golden().at("format"));
  REQUIRE(format.ok());
  CHECK(format->version == 4);
  CHECK(format->token_id_key == SampleFormat().token_id_key);
  CHECK(format->created_wall_ms == SampleFormat().created_wall_ms);
  const auto mark = DecodeClockMark(Golden().at("clock"));
  REQUIRE(mark.ok());
  CHECK(mark->ledger_ms == kSampleMs);
  CHECK(mark->machine.boottime_ms == 86'400'000);
  CHECK(mark->machine.wall_ms == kSampleMs + 250);
  CHECK(mark->machine.boot_id == SampleClockMark().machine.boot_id);
  const auto seal = DecodeSeal(Golden().at("seal"));
  REQUIRE(seal.ok());
  CHECK(*seal == SampleSeal());
  const auto watermark = DecodeWatermark(Golden().at("watermark"));
  REQUIRE(watermark.ok());
  CHECK(watermark->deadline_ms == kSampleMs + 4000);
}

TEST_CASE("a truncated or extended value is refused, but a JSON text of any length is a rule") {
  for (const std::string& name : Kinds()) {
    CAPTURE(name);
    const std::string& bytes = Golden().at(name);
    const Recode recode = RecoderFor(name);
    REQUIRE(recode(bytes) == bytes);
    const bool open_ended = name == "rule_value";
    for (size_t size = 0; size < (open_ended ? 3 : bytes.size()); ++size) {
      CAPTURE(size);
      CHECK(recode(std::string_view(bytes).substr(0, size)).empty());
    }
    for (size_t more = 1; more <= 16 && !open_ended; ++more) {
      CAPTURE(more);
      CHECK(recode(bytes + std::string(more, '\0')).empty());
      CHECK(recode(bytes + std::string(more, 'x')).empty());
    }
  }
}

TEST_CASE("whatever a decoder accepts encodes to the same bytes again") {
  Prng random(20240607);
  for (const std::string& name : Kinds()) {
    const Recode recode = RecoderFor(name);
    int accepted = 0;
    for (int round = 0; round < 20'000; ++round) {
      std::string bytes = Golden().at(name);
      const size_t changes = 1 + random.Next() % 3;
      for (size_t i = 0; i < changes; ++i) {
        bytes[random.Next() % bytes.size()] = static_cast<char>(random.Next());
      }
      const std::string again = recode(bytes);
      if (again.empty()) continue;
      ++accepted;
      CHECK(again == bytes);
    }
    CAPTURE(name);
    CHECK(accepted > 0);
  }
}

TEST_CASE("every other version byte is refused and named") {
  for (const std::string& name : Kinds()) {
    if (name == "token_key" || name == "session_key" || name == "rule_key") continue;
    if (name == "format") continue;
    CAPTURE(name);
    const auto wanted = static_cast<uint8_t>(Golden().at(name)[0]);
    CHECK(wanted <= 2);
    for (int version = 0; version < 256; ++version) {
      std::string bytes = Golden().at(name);
      bytes[0] = static_cast<char>(version);
      CHECK(RecoderFor(name)(bytes).empty() == (version != wanted));
    }
  }
  std::string value = Golden().at("token_value");
  value[0] = 9;
  const auto token = DecodeToken(Family::kTokensShort, Golden().at("token_key"), value);
  CHECK(token.status().code() == StatusCode::kCorruption);
  CHECK(token.status().message() == "token value: version is 9 instead of 1 or 2");
}

TEST_CASE("fields out of their range are refused by name") {
  struct Case {
    const char* vector;
    size_t offset;
    std::string bytes;
    const char* message;
  };
  const std::string zero8(8, '\0');
  const std::string negative8 = std::string(1, '\x80') + std::string(7, '\0');
  const std::vector<Case> cases = {
      {"token_value", 1, zero8, "token value: flow is not positive"},
      {"token_value", 1, negative8, "token value: flow is not positive"},
      {"token_value", 9, zero8, "token value: session is 0"},
      {"token_value", 17, std::string(4, '\0'), "token value: count is out of range"},
      {"token_value", 17, std::string("\x80\0\0\0", 4), "token value: count is out of range"},
      {"token_value", 21, negative8, "token value: issued_ms is not between 0 and the deadline"},
      {"token_value", 21, std::string("\0\0\1\x8b\xcf\xe5\x77\xa1", 8),
       "token value: issued_ms is not between 0 and the deadline"},
      {"token_value", 29, zero8, "token value: fence is 0"},
  };
  for (const Case& c : cases) {
    std::string value = Golden().at(c.vector);
    value.replace(c.offset, c.bytes.size(), c.bytes);
    const auto token = DecodeToken(Family::kTokensShort, Golden().at("token_key"), value);
    CHECK(token.status().code() == StatusCode::kCorruption);
    CHECK(token.status().message() == c.message);
  }
  const auto key_problem = [](const std::string& key) {
    return DecodeTokenKey(Family::kTokensShort, key).status().message();
  };
  const std::string& key = Golden().at("token_key");
  CHECK(key_problem(key.substr(0, 8) + zero8) == "token key: token_id is out of range");
  CHECK(key_problem(key.substr(0, 8) + negative8) == "token key: token_id is out of range");
  CHECK(key_problem(negative8 + key.substr(8)) == "token key: deadline_ms is out of range");
  CHECK(DecodeTokenKey(Family::kSessions, key).status().message() ==
        "token key: the family does not hold tokens");
  for (const std::string& fence : {zero8, std::string("\x40\0\0\0\0\0\0\1", 8)}) {
    std::string seal = Golden().at("seal");
    seal.replace(9, 8, fence);
    CHECK(DecodeSeal(seal).status().message() == "seal: next_fence is out of range");
  }
  std::string session = Golden().at("session_value");
  session.back() = '\xff';
  CHECK_FALSE(DecodeSession(Golden().at("session_key"), session).ok());
}

TEST_CASE("a rule is active, removed or draining, and nothing else") {
  for (int state = 0; state < 256; ++state) {
    CAPTURE(state);
    std::string value = Golden().at("rule_value");
    value[1] = static_cast<char>(state);
    const auto rules = DecodeRules(Golden().at("rule_key"), value);
    CHECK(rules.ok() == (state >= 1 && state <= 3));
    if (rules.ok()) CHECK(static_cast<int>(rules->at(0).state) == state);
    if (state == 4) {
      CHECK(rules.status().message() ==
            "rule value: state is none of active, removed and draining");
    }
  }
}

TEST_CASE("a record of two rules is refused where its sizes do not fit, or one rule is wrong") {
  const std::string key = Golden().at("rule_key");
  const std::string value = Golden().at("rule_value_two");
  const size_t first = SampleRule().json.size();
  for (size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    // Cut within the second JSON it is a shorter text, which core refuses.
    CHECK(DecodeRules(key, value.substr(0, size)).ok() == (size > 1 + 5 + first + 1));
  }
  for (const size_t state : {size_t{1}, 1 + 5 + first}) {
    std::string wrong = value;
    wrong[state] = 4;
    CHECK_FALSE(DecodeRules(key, wrong).ok());
  }
  std::string empty = value;
  empty[5] = 0;
  CHECK_FALSE(DecodeRules(key, empty).ok());
  std::string beyond = value;
  beyond[2] = '\xff';
  CHECK(DecodeRules(key, beyond).status().message() ==
        "rule value: is too short for the size it states");
  std::string later = value;
  later[0] = 3;
  CHECK(DecodeRules(key, later).status().message() == "rule value: version is 3 instead of 1 or 2");
}

TEST_CASE("names at their longest fit and one byte more is refused") {
  Session session = SampleSession();
  session.name_space = std::string(128, 'n');
  session.client_id = std::string(128, 'c');
  const std::string bytes = EncodeSessionValue(session);
  const auto decoded = DecodeSession(EncodeSessionKey(session.id), bytes);
  REQUIRE(decoded.ok());
  CHECK(*decoded == session);
  std::string longer = bytes;
  longer.insert(11, 1, 'n');
  longer[10] = static_cast<char>(129);
  CHECK(DecodeSession(EncodeSessionKey(session.id), longer).status().message() ==
        "session value: namespace is too long");
  longer = bytes + "c";
  longer[139] = static_cast<char>(129);
  CHECK(DecodeSession(EncodeSessionKey(session.id), longer).status().message() ==
        "session value: client_id is too long");
}

TEST_CASE("a rule key holds the flow behind the first zero byte") {
  const auto nameless = DecodeRuleKey(EncodeRuleKey("", FlowId(256)));
  REQUIRE(nameless.ok());
  CHECK(nameless->name_space.empty());
  CHECK(nameless->flow == FlowId(256));
  const std::string longest(128, 'n');
  REQUIRE(DecodeRuleKey(EncodeRuleKey(longest, FlowId(1))).ok());
  CHECK_FALSE(DecodeRuleKey("n" + EncodeRuleKey(longest, FlowId(1))).ok());
  CHECK_FALSE(DecodeRuleKey(std::string("a\0", 2) + EncodeRuleKey("b", FlowId(1))).ok());
  CHECK_FALSE(DecodeRuleKey("no zero byte at all").ok());
  CHECK_FALSE(DecodeRuleKey(std::string("orders\0", 7) + std::string(8, '\0')).ok());
}

TEST_CASE("a format of another version is refused before its other bytes are looked at") {
  Format future = SampleFormat();
  future.version = 7;
  const std::string of_another_layout = EncodeFormat(future).substr(0, 4) + "anything";
  const auto format = DecodeFormat(of_another_layout);
  CHECK(format.status().code() == StatusCode::kFailedPrecondition);
  CHECK(
      format.status().message() ==
      "the ledger has format version 7, this program reads only versions 1 to 4: run the nowcalls "
      "release that wrote it, or choose another data directory");
  for (const uint32_t version : {0, 1, 2, 3, 4, 5}) {
    future.version = version;
    const auto decoded = DecodeFormat(EncodeFormat(future));
    CHECK(decoded.ok() == (version >= 1 && version <= 4));
    if (decoded.ok()) CHECK(decoded->version == version);
  }
  CHECK(DecodeFormat("abc").status().code() == StatusCode::kCorruption);
  CHECK(DecodeFormat(EncodeFormat(SampleFormat()) + "x").status().code() ==
        StatusCode::kCorruption);
}

TEST_CASE("token keys sort by deadline, then by id") {
  Prng random(7);
  const auto any_key = [&random] {
    const auto deadline_ms = static_cast<int64_t>(random.Next() >> (2 + random.Next() % 62));
    const uint64_t id = (random.Next() >> (1 + random.Next() % 63)) | 1;
    return TokenKey{Family::kTokensShort, deadline_ms, TokenId(id)};
  };
  for (int round = 0; round < 10'000; ++round) {
    const TokenKey a = any_key();
    const TokenKey b = any_key();
    CHECK((TokenKeyBytes(a) < TokenKeyBytes(b)) == (a < b));
  }
}

TEST_CASE("the lower bound of a deadline parts the keys before it from those at it") {
  const TokenKey last_before{Family::kTokensShort, 999, TokenId(INT64_MAX)};
  const TokenKey first_at{Family::kTokensShort, 1000, TokenId(1)};
  CHECK(TokenKeyBytes(last_before) < TokenKeyLowerBound(1000));
  CHECK(TokenKeyLowerBound(1000) <= TokenKeyBytes(first_at));
  CHECK(TokenKeyLowerBound(INT64_MIN) == std::string(16, '\0'));
  CHECK(TokenKeyBytes({Family::kTokensShort, int64_t{1} << 62, TokenId(INT64_MAX)}) <
        TokenKeyLowerBound(INT64_MAX));
}

TEST_CASE("only a named session has an instance, of 63 bits, and 0 has the layout without one") {
  const std::string& key = Golden().at("session_key");
  std::string value = Golden().at("session_value_instance");
  std::string greatest = value;
  greatest.replace(greatest.size() - 8, 8, "\x7f\xff\xff\xff\xff\xff\xff\xff");
  CHECK(DecodeSession(key, greatest)->instance == INT64_MAX);
  std::string beyond = greatest;
  beyond[beyond.size() - 8] = '\x80';
  CHECK(DecodeSession(key, beyond).status().message() == "session value: instance is out of range");
  std::string none = value;
  none.replace(none.size() - 8, 8, std::string(8, '\0'));
  CHECK(DecodeSession(key, none).status().message() == "session value: instance is 0");
  value[1] = '\2';
  CHECK(DecodeSession(key, value).status().message() ==
        "session value: a session of a connection has an instance");
}

}  // namespace
}  // namespace nowcalls::ledger
