// NamespaceGuards: requests for calls a second, by namespace.
//
// Thread: any.
#ifndef NOWCALLS_CORE_TABLES_NAMESPACE_GUARDS_H_
#define NOWCALLS_CORE_TABLES_NAMESPACE_GUARDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace nowcalls::core {

// Requests a second; 0: no bound.
struct NamespaceGuards {
  using ByName = std::map<std::string, uint32_t, std::less<>>;

  uint32_t otherwise = Limits{}.namespace_qps_max;
  ByName by_name{};

  uint32_t Of(std::string_view name_space) const {
    const auto own = by_name.find(name_space);
    return own == by_name.end() ? otherwise : own->second;
  }
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_NAMESPACE_GUARDS_H_
