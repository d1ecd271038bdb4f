#include "cluster/keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

namespace nowcalls::cluster {
namespace {

constexpr std::string_view kLog = "log/";
constexpr size_t kDigits = 16;
constexpr size_t kPartDigits = 4;

std::string Digits(uint64_t number, size_t digits) {
  std::array<char, kDigits + 1> text{};
  std::snprintf(text.data(), text.size(), "%0*llx", static_cast<int>(digits),
                static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

Result<Keys> Keys::Under(std::string_view prefix) {
  while (prefix.starts_with('/')) prefix.remove_prefix(1);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.empty()) return Status::InvalidArgument("the prefix of the cluster's keys is empty");
  if (prefix.size() > kPrefixBytesMax) {
    return Status::InvalidArgument("the prefix of the cluster's keys has more than " +
                                   std::to_string(kPrefixBytesMax) + " bytes");
  }
  if (!std::all_of(prefix.begin(), prefix.end(), [](char c) { return c > ' ' && c <= '~'; })) {
    return Status::InvalidArgument(
        "the prefix of the cluster's keys has a character that is not visible ASCII");
  }
  return Keys("/" + std::string(prefix) + "/");
}

std::string Keys::Slot(uint64_t number) const {
  return prefix_ + std::string(kLog) + Digits(number, kDigits);
}

std::string Keys::Part(uint64_t number, size_t index) const {
  return prefix_ + "parts/" + Digits(number, kDigits) + "/" + Digits(index, kPartDigits);
}

std::optional<uint64_t> Keys::SlotNumber(std::string_view key) const {
  if (!key.starts_with(prefix_)) return {};
  key.remove_prefix(prefix_.size());
  if (!key.starts_with(kLog) || key.size() != kLog.size() + kDigits) return {};
  key.remove_prefix(kLog.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number, 16);
  // A slot is named in one way only.
  if (error != std::errc() || end != key.data() + key.size()) return {};
  if (std::any_of(key.begin(), key.end(), [](char c) { return c >= 'A' && c <= 'F'; })) return {};
  return number;
}

}  // namespace nowcalls::cluster
