// LogEnds: the flows and namespaces whose ended tokens are logged, a line each.
//
// Thread: the choice is a plain value for any thread; NoteEnd is the loop's. An end is logged when
// it is decided; a crash may undo it.
#ifndef NOWCALLS_CORE_LOG_ENDS_H_
#define NOWCALLS_CORE_LOG_ENDS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/notices.h"
#include "core/tables/slot.h"
#include "core/tables/token_end.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Books;

struct LogEnds {
  bool all = false;
  std::set<int64_t> flows{};
  std::set<std::string, std::less<>> namespaces{};  // Of the sessions that hold the tokens.

  bool any() const { return all || !flows.empty() || !namespaces.empty(); }
  bool Has(FlowId flow, std::string_view name_space) const {
    return all || flows.contains(flow.value) || namespaces.contains(name_space);
  }
};

// If the books' options ask for it. REQUIRES: a live token.
void NoteEnd(const Books& books, TokenSlot slot, int64_t now_ms, const TokenEnd& end,
             Notices* notices);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_LOG_ENDS_H_
