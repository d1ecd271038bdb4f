#include "engine/sentinel/service.h"

namespace nowcalls::engine::sentinel {

std::string_view RequestWord(size_t index) {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"ping", "flow", "param_flow", "acquire", "release", "keep", "unknown"});
  static_assert(kWords.size() == std::tuple_size_v<decltype(Counters::requests)>);
  return kWords[index];
}

}  // namespace nowcalls::engine::sentinel
