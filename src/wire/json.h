// JSON documents as MessagePack and back, for what has no fixed layout: rules.
//
// Thread: any. Not for hot paths. Input is one whole value as the splitter accepted it. A number
// without a fraction is packed as an integer, so 2.0 comes back as 2. Who needs only text gets by
// without the heavy header of nlohmann-json.
#ifndef NOWCALLS_WIRE_JSON_H_
#define NOWCALLS_WIRE_JSON_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/flow_kind.h"
#include "nowcalls/status.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

// A response whose result is `result`; a page [rows, next_cursor or nil] of maps.
void EncodeJsonResult(uint32_t msgid, const nlohmann::ordered_json& result, OutputBuffer* out);
void EncodeJsonPage(uint32_t msgid, const std::vector<nlohmann::ordered_json>& rows,
                    uint64_t next_cursor, OutputBuffer* out);

// The result of rules_list: a rule is the JSON text of an object, behind its namespace.
struct RuleRow {
  FlowKind kind = FlowKind::kFlow;
  std::string_view name_space;  // UTF-8.
  std::string json;             // REQUIRES: valid.
};
void EncodeRulesPage(uint32_t msgid, const std::vector<RuleRow>& rows, uint64_t next_cursor,
                     OutputBuffer* out);

// The value as JSON. kInvalidArgument for what JSON cannot say: bin, ext, map keys that are not
// strings, NaN, infinity, strings that are not UTF-8.
Result<nlohmann::ordered_json> JsonFromMessagePack(std::string_view value);
Result<std::string> JsonTextFromMessagePack(std::string_view value);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_JSON_H_
