#include "server/config/config_changes.h"

#include "server/config/settings.h"

namespace nowcalls::server {
namespace {

std::string Shown(const std::string& value) { return value.empty() ? "not set" : value; }

}  // namespace

ConfigChanges ApplyLiveSettings(const ServerConfig& at_start, const ServerConfig& read,
                                ServerConfig* running) {
  ConfigChanges changes;
  for (const Setting& setting : Settings()) {
    const std::string wanted = setting.get(read);
    // Compared with the start, not with `running`: the start adapts values to the machine.
    if (!setting.is_live()) {
      if (wanted != setting.get(at_start)) changes.need_restart.emplace_back(setting.name);
      continue;
    }
    const std::string before = setting.get(*running);
    // Values are compared as `get` prints them.
    if (wanted == before) continue;
    setting.apply(read, running);
    changes.applied.push_back(std::string(setting.name) + " is " + Shown(wanted) +
                              " now, and was " + Shown(before));
  }
  return changes;
}

}  // namespace nowcalls::server
