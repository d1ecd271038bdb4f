// LogEnds: the flows and namespaces whose ended tokens are logged, a line each, and the line.
//
// Thread: the choice is a plain value for any thread; NoteEnd is the loop's. The line is
// written when the end is decided: an end that a crash undoes may have been logged.
#ifndef NOWCALLS_CORE_LOG_ENDS_H_
#define NOWCALLS_CORE_LOG_ENDS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/notices.h"
#include "core/slot.h"
#include "core/token_end.h"
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

// Adds the line about a token that is about to end, if the options of the books ask for it.
void NoteEnd(const Books& books, TokenSlot slot, int64_t now_ms, const TokenEnd& end,
             Notices* notices);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_LOG_ENDS_H_
