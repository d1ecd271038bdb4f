// Rows of `namespaces`; conventions of wire/rows.h.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_NAMESPACE_ROWS_H_
#define NOWCALLS_WIRE_NAMESPACE_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"
#include "wire/output_buffer.h"
#include "wire/rows.h"

namespace nowcalls::wire {

struct NamespaceRow {
  std::string name_space;                   // "namespace"
  std::optional<std::string> source;        // nowcalls/rule_source.h; absent when it is nobody's.
  uint64_t rules = 0;                       // Active ones.
  uint64_t sessions = 0;                    // Online, or offline with tokens.
  std::optional<uint64_t> sessions_online;  // Absent offline, and so are all that follow.
  // In this run. Absent: has not happened, or a set came into force since a refusal.
  std::optional<int64_t> loaded_ms{};
  std::optional<int64_t> refused_ms{};
  std::optional<std::string> refusal{};    // Why.
  std::optional<uint64_t> warnings{};      // About the rules in force.
  std::optional<uint64_t> requests_max{};  // Requests for calls a second, a second; 0: no guard.

  bool operator==(const NamespaceRow&) const = default;
};

// One page: [rows, next_cursor], 0 as nil.
void EncodeNamespacePage(uint32_t msgid, const std::vector<NamespaceRow>& rows,
                         uint64_t next_cursor, OutputBuffer* out);
// kCorruption: not such a page.
Result<Page<NamespaceRow>> DecodeNamespacePage(std::string_view result);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_NAMESPACE_ROWS_H_
