// How sessions are named in the simulation: NAMESPACE/CLIENT, and #INSTANCE unless that is 0.
#ifndef NOWCALLS_SIM_OWNERS_H_
#define NOWCALLS_SIM_OWNERS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace nowcalls::sim {

inline constexpr std::string_view kAnyInstance = "#*";

inline std::string OwnerText(const std::string& name_space, const std::string& client_id,
                             uint64_t instance) {
  const std::string client = name_space + "/" + client_id;
  return instance == 0 ? client : client + "#" + std::to_string(instance);
}

// Stands for all instances of a client.
inline std::string AllInstances(const std::string& name_space, const std::string& client_id) {
  return OwnerText(name_space, client_id, 0) + std::string(kAnyInstance);
}

// Whether `asked` is the owner or stands for it.
inline bool StandsFor(std::string_view asked, std::string_view owner) {
  if (!asked.ends_with(kAnyInstance)) return asked == owner;
  return asked.substr(0, asked.size() - kAnyInstance.size()) == owner.substr(0, owner.find('#'));
}

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_OWNERS_H_
