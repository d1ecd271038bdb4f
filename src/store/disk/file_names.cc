#include "store/disk/file_names.h"

#include <charconv>
#include <system_error>

namespace nowcalls::store {
namespace {

// 0 unless all of `digits` is a number.
uint64_t NumberOf(std::string_view digits) {
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && stop == end ? number : 0;
}

std::string_view NameIn(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

uint64_t LogNumber(std::string_view path) {
  constexpr std::string_view kSuffix = ".log";
  std::string_view name = NameIn(path);
  if (!name.ends_with(kSuffix)) return 0;
  name.remove_suffix(kSuffix.size());
  return NumberOf(name);
}

std::string LogName(uint64_t number) {
  std::string digits = std::to_string(number);
  constexpr size_t kDigits = 6;
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return digits + ".log";
}

uint64_t ManifestNumber(std::string_view path) {
  constexpr std::string_view kPrefix = "MANIFEST-";
  std::string_view name = NameIn(path);
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  return NumberOf(name);
}

}  // namespace nowcalls::store
