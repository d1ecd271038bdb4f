#include "ledger/namespace_codec.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kValueVersion = 1;
// Follows the name: a zero byte, and the flow id 0, which no rule has.
constexpr std::string_view kKeyTail("\0\0\0\0\0\0\0\0\0", 9);

static_assert(kRuleSourceBytesMax <= UINT16_MAX);

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kNamespaceBytesMax &&
         name.find('\0') == std::string_view::npos;
}

bool IsSource(std::string_view source) {
  return !source.empty() && source.size() <= kRuleSourceBytesMax;
}

}  // namespace

bool IsNamespaceKey(std::string_view key) {
  // A name holds no zero byte, so the first zero begins the tail.
  return key.ends_with(kKeyTail) && key.find('\0') == key.size() - kKeyTail.size();
}

std::string EncodeNamespaceKey(std::string_view name_space) {
  NOWCALLS_CHECK(IsName(name_space));
  return std::string(name_space) + std::string(kKeyTail);
}

Result<std::string_view> DecodeNamespaceKey(std::string_view key) {
  if (!IsNamespaceKey(key)) {
    return Status::Corruption("namespace key: is not a namespace and 9 zero bytes");
  }
  const std::string_view name = key.substr(0, key.size() - kKeyTail.size());
  if (!IsName(name)) return Status::Corruption("namespace key: the name is empty or too long");
  return name;
}

std::string EncodeNamespaceValue(std::string_view source) {
  NOWCALLS_CHECK(IsSource(source));
  std::string out;
  AppendBigEndian(&out, kValueVersion);
  AppendBigEndian(&out, static_cast<uint16_t>(source.size()));
  out += source;
  return out;
}

Result<NamespaceEntry> DecodeNamespace(std::string_view key, std::string_view value) {
  const Result<std::string_view> name = DecodeNamespaceKey(key);
  if (!name.ok()) return name.status();
  ByteReader reader(value);
  const auto version = reader.Read<uint8_t>();
  const std::string_view source = reader.ReadBytes(reader.Read<uint16_t>());
  // The size before the version: a short value has neither.
  if (!reader.Finished()) {
    return Status::Corruption("namespace value: " + std::to_string(value.size()) +
                              " bytes do not fit the length it states");
  }
  if (version != kValueVersion) {
    return Status::Corruption("namespace value: version is " + std::to_string(version) +
                              " instead of " + std::to_string(kValueVersion));
  }
  if (!IsSource(source)) {
    return Status::Corruption("namespace value: the source is empty or too long");
  }
  return NamespaceEntry{std::string(*name), std::string(source)};
}

}  // namespace nowcalls::ledger
