// The listing of namespaces: where the rules of each come from, and how many sessions use it.
#include <vector>

#include "base/limits.h"
#include "core/books.h"
#include "engine/permission.h"
#include "engine/rpc/handlers.h"
#include "wire/namespace_rows.h"

namespace nowcalls::engine::rpc {
namespace {

// Slots that one page looks at; it may have fewer rows than asked, perhaps none, and a cursor.
constexpr uint64_t kLookedAtMax = 2000;

// Sources may have long names. A page ends before it outgrows an answer.
constexpr size_t kPageBytesMax = kReplyBytesMax / 2;

wire::NamespaceRow RowOf(const core::Namespace& name_space) {
  wire::NamespaceRow row;
  row.name_space = name_space.name;
  const std::string& source =
      name_space.claimed_by.empty() ? name_space.source : name_space.claimed_by;
  if (!source.empty()) row.source = source;
  row.rules = name_space.rule_keys.size();
  row.sessions = name_space.sessions;
  row.sessions_online = name_space.sessions_online;
  const core::RuleLoads& loads = name_space.loads;
  if (loads.loaded_ms > 0) row.loaded_ms = loads.loaded_ms;
  if (loads.refused_ms > 0) row.refused_ms = loads.refused_ms;
  if (loads.refused_ms > 0) row.refusal = loads.refusal;
  row.warnings = loads.warnings;
  row.requests_max = name_space.guard;
  return row;
}

}  // namespace

// In the order of slots, which never move. The cursor is the next slot; free slots make no row.
void Namespaces(const Call& call) {
  wire::PageParams page;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &page, &error)) {
    return ReplyError(call, error);
  }
  const core::FlowTable& flows = call.core()->flows();
  const core::Sight sight = SightOf(*call.connection);
  std::vector<wire::NamespaceRow> rows;
  uint64_t slot = page.cursor;
  size_t bytes = 0;
  uint64_t seen = 0;
  for (; slot < flows.namespace_slots() && rows.size() < page.limit; ++slot) {
    if (seen++ == kLookedAtMax || bytes > kPageBytesMax) break;
    const auto& name_space = flows.name_space(static_cast<core::NamespaceSlot>(slot));
    if (name_space.name.empty() || !sight.Has(name_space.name)) continue;
    rows.push_back(RowOf(name_space));
    bytes += name_space.name.size() + rows.back().source.value_or("").size() +
             rows.back().refusal.value_or("").size();
  }
  call.core()->books().looks() += seen - rows.size();
  const uint64_t next = slot < flows.namespace_slots() ? slot : 0;
  wire::EncodeNamespacePage(call.request.msgid, rows, next, call.AfterCommit());
}

}  // namespace nowcalls::engine::rpc
