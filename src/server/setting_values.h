// Values of settings that are lists or tables, from text and to text; and what all values are
// parsed with.
//
// Thread: any; pure. A list replaces the one that the configuration has. kInvalidArgument completes
// a sentence that begins with the setting's name.
#ifndef NOWCALLS_SERVER_SETTING_VALUES_H_
#define NOWCALLS_SERVER_SETTING_VALUES_H_

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "nowcalls/status.h"
#include "server/config.h"

namespace nowcalls::server {

inline constexpr int64_t kGuardMax = 1'000'000'000;

// "must be WHAT, got 'GOT'".
Status MustBe(std::string_view what, std::string_view got);

// The whole of `text` as a number.
template <typename T>
bool ParseNumber(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// [NAMESPACE=]FILE.
Status ParseRuleFiles(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowRuleFiles(const ServerConfig& config);

// "all", a flow id, or the name of a namespace.
Status ParseLogEnds(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowLogEnds(const ServerConfig& config);

// NAMESPACE=N. The last "=" counts: a name may have one.
Status ParseNamespaceGuards(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowNamespaceGuards(const ServerConfig& config);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SETTING_VALUES_H_
