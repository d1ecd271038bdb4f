// JSON documents of rules as MessagePack and back.
//
// Thread: any. Input: one whole value of the splitter. 2.0 comes back as 2.
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

// Appends a response; a page is [rows, next_cursor or nil].
void EncodeJsonResult(uint32_t msgid, const nlohmann::ordered_json& result, OutputBuffer* out);
void EncodeJsonPage(uint32_t msgid, const std::vector<nlohmann::ordered_json>& rows,
                    uint64_t next_cursor, OutputBuffer* out);

// A row of rules_list: namespace and kind, then the members of `json`.
struct RuleRow {
  FlowKind kind = FlowKind::kFlow;
  std::string_view name_space;  // UTF-8.
  std::string json;             // REQUIRES: valid.
};
void EncodeRulesPage(uint32_t msgid, const std::vector<RuleRow>& rows, uint64_t next_cursor,
                     OutputBuffer* out);

// kInvalidArgument: bin, ext, map keys that are no strings, NaN, infinity, strings not in UTF-8.
Result<nlohmann::ordered_json> JsonFromMessagePack(std::string_view value);
Result<std::string> JsonTextFromMessagePack(std::string_view value);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_JSON_H_
