// Settings that are lists or tables, from and to text.
//
// Thread: any; pure. A list replaces the configuration's. kInvalidArgument completes a sentence
// that begins with the setting.
#ifndef NOWCALLS_SERVER_CONFIG_SETTING_VALUES_H_
#define NOWCALLS_SERVER_CONFIG_SETTING_VALUES_H_

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "nowcalls/status.h"
#include "server/config/config.h"

namespace nowcalls::server {

inline constexpr int64_t kGuardMax = 1'000'000'000;

// "must be WHAT, got 'GOT'".
Status MustBe(std::string_view what, std::string_view got);

// False unless all of `text` is a number.
template <typename T>
bool ParseNumber(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// With commas, as kList reads it from the environment.
std::string ListText(const std::vector<std::string>& values);

// "all", a flow id or a namespace.
Status ParseLogEnds(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowLogEnds(const ServerConfig& config);

// NAMESPACE=N, split at the last "=".
Status ParseNamespaceGuards(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowNamespaceGuards(const ServerConfig& config);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_SETTING_VALUES_H_
