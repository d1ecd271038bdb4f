// RuleUrl: a place of rules that is no file.
//
// Thread: any; pure. kInvalidArgument completes a sentence that begins with the setting, and shows
// no secret.
#ifndef NOWCALLS_SERVER_CONFIG_RULE_URL_H_
#define NOWCALLS_SERVER_CONFIG_RULE_URL_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "nowcalls/status.h"
#include "server/config/etcd_url.h"

namespace nowcalls::server {

// Each has a thread.
inline constexpr size_t kRuleUrlsMax = 64;
inline constexpr size_t kRuleUrlBytesMax = 2048;

struct RuleUrl {
  std::string name_space;
  std::string url;              // Free of secrets: the log and the ledger show it.
  std::optional<EtcdUrl> etcd;  // None: http or https.

  bool https() const { return url.starts_with("https://"); }
};

// Begins with SCHEME://, of whatever scheme.
bool IsUrl(std::string_view text);

// etcd://, etcds://, http:// or https://.
Result<RuleUrl> ParseRuleUrl(const std::string& name_space, const std::string& url);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_RULE_URL_H_
