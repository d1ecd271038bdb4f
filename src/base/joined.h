// Joined: one array of several.
//
// Thread: any; constexpr.
#ifndef NOWCALLS_BASE_JOINED_H_
#define NOWCALLS_BASE_JOINED_H_

#include <algorithm>
#include <array>
#include <cstddef>

namespace nowcalls {

template <typename Row, size_t... kSizes>
constexpr auto Joined(const std::array<Row, kSizes>&... parts) {
  std::array<Row, (kSizes + ...)> all{};
  auto end = all.begin();
  ((end = std::copy(parts.begin(), parts.end(), end)), ...);
  return all;
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_JOINED_H_
