// The record of a namespace against its golden bytes, and against everything that is nearly right.
#include "ledger/namespace_codec.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "base/hex.h"
#include "base/limits.h"
#include "base/prng.h"
#include "ledger/codec.h"
#include "support/golden.h"
#include "unit/ledger/samples.h"

namespace nowcalls::ledger {
namespace {

const std::string& Golden(const std::string& name) {
  static const std::map<std::string, std::string> vectors =
      testing::LoadGolden(testing::GoldenPath("ledger_values.hex"));
  return vectors.at(name);
}

std::string ProblemOf(const std::string& key, const std::string& value) {
  const Status status = DecodeNamespace(key, value).status();
  CHECK((status.ok() || status.code() == StatusCode::kCorruption));
  return status.message();
}

TEST_CASE("a namespace and its source have their golden bytes, in both directions") {
  CHECK(ToHex(EncodeNamespaceKey("orders")) == ToHex(Golden("namespace_key")));
  CHECK(ToHex(EncodeNamespaceValue(kSampleSource)) == ToHex(Golden("namespace_value")));
  const auto decoded = DecodeNamespace(Golden("namespace_key"), Golden("namespace_value"));
  REQUIRE(decoded.ok());
  CHECK(*decoded == NamespaceEntry{"orders", kSampleSource});
}

TEST_CASE("the keys of rules and of namespaces are told apart, and sort with the namespace first") {
  CHECK(IsNamespaceKey(Golden("namespace_key")));
  CHECK_FALSE(IsNamespaceKey(Golden("rule_key")));
  CHECK_FALSE(DecodeRuleKey(Golden("namespace_key")).ok());
  CHECK_FALSE(DecodeNamespaceKey(Golden("rule_key")).ok());
  CHECK(EncodeNamespaceKey("orders") < EncodeRuleKey("orders", FlowId(1)));
  CHECK(EncodeNamespaceKey("orders") > EncodeRuleKey("order", FlowId(INT64_MAX)));
  // A flow id that ends in zero bytes is still a rule's.
  CHECK_FALSE(IsNamespaceKey(EncodeRuleKey("orders", FlowId(int64_t{1} << 56))));
  CHECK_FALSE(IsNamespaceKey(std::string(16, '\0')));
  CHECK_FALSE(IsNamespaceKey(""));
}

TEST_CASE("names and sources at their longest fit, and one byte more is refused") {
  const std::string key = EncodeNamespaceKey(std::string(kNamespaceBytesMax, 'n'));
  const std::string value = EncodeNamespaceValue(std::string(kRuleSourceBytesMax, 's'));
  const auto longest = DecodeNamespace(key, value);
  REQUIRE(longest.ok());
  CHECK(longest->source.size() == kRuleSourceBytesMax);
  CHECK(ProblemOf("n" + key, value) == "namespace key: the name is empty or too long");
  CHECK(ProblemOf(std::string(9, '\0'), value) == "namespace key: the name is empty or too long");
  std::string longer = value + "s";
  ++longer[2];
  CHECK(ProblemOf(key, longer) == "namespace value: the source is empty or too long");
  CHECK(ProblemOf(key, std::string("\1\0\0", 3)) ==
        "namespace value: the source is empty or too long");
}

TEST_CASE("a truncated or extended namespace value, or one of another version, is refused") {
  const std::string& key = Golden("namespace_key");
  const std::string& value = Golden("namespace_value");
  for (size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(DecodeNamespace(key, value.substr(0, size)).ok());
  }
  CHECK(ProblemOf(key, value + "x") == "namespace value: 34 bytes do not fit the length it states");
  for (int version = 0; version < 256; ++version) {
    std::string other = value;
    other[0] = static_cast<char>(version);
    CHECK(DecodeNamespace(key, other).ok() == (version == 1));
  }
}

TEST_CASE("whatever is accepted as a namespace encodes to the same bytes again") {
  Prng random(5);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string key = Golden("namespace_key");
    std::string value = Golden("namespace_value");
    key[random.Next() % key.size()] = static_cast<char>(random.Next());
    value[random.Next() % value.size()] = static_cast<char>(random.Next());
    const auto decoded = DecodeNamespace(key, value);
    if (!decoded.ok()) continue;
    ++accepted;
    CHECK(EncodeNamespaceKey(decoded->name_space) == key);
    CHECK(EncodeNamespaceValue(decoded->source) == value);
  }
  CHECK(accepted > 0);
}

}  // namespace
}  // namespace nowcalls::ledger
