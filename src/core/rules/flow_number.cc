#include "core/rules/flow_number.h"

#include <array>
#include <string>

#include "base/keyed_hash.h"

namespace nowcalls::core {

FlowId FlowNumberOf(std::string_view name_space, std::string_view resource) {
  // The bytes "nowcalls flow id". Names hold no zero byte, so the text is of one pair only.
  constexpr std::array<uint64_t, 2> kKey = {0x736c6c6163776f6e, 0x646920776f6c6620};
  std::string text(name_space);
  text += '\0';
  text += resource;
  constexpr uint64_t kMask = kFlowNumbersBegin - 1;
  return FlowId{kFlowNumbersBegin + static_cast<int64_t>(KeyedHash(kKey, text) & kMask)};
}

}  // namespace nowcalls::core
