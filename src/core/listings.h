// Listings: tokens page by page, oldest first.
//
// Thread: loop. Listings are bounded, and forgotten when idle. They change only cursors of the
// token table.
#ifndef NOWCALLS_CORE_LISTINGS_H_
#define NOWCALLS_CORE_LISTINGS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "core/answers.h"
#include "core/sight.h"
#include "core/tables/flow_table.h"
#include "core/tables/session_table.h"
#include "core/tables/token_table.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

class Listings {
 public:
  // `looks`: Books::looks.
  Listings(const Limits* limits, const FlowTable* flows, const SessionTable* sessions,
           TokenTable* tokens, uint64_t* looks)
      : limits_(limits), flows_(flows), sessions_(sessions), tokens_(tokens), looks_(looks) {}

  // With the last batch loaded: no earlier start gave the cursors that follow.
  void Begin(uint64_t batch_number);

  // See Core::ListTokens.
  Result<TokenPage> Page(Instant now, uint32_t owner, const TokenFilter& filter, uint32_t limit,
                         uint64_t cursor, const Sight& sight);
  void ForgetIdle(Instant now);
  Instant NextIdle() const;  // When ForgetIdle has work; kNever: never.

 private:
  struct Listing {
    uint64_t id = 0;  // Its cursor.
    uint32_t owner = 0;
    TokenFilter filter;
    TokenCursor cursor;
    int64_t used_ms = 0;
  };

  Result<Listing*> Find(uint64_t id, uint32_t owner);
  Listing* Open(uint32_t owner, const TokenFilter& filter);
  int64_t CountOf(uint32_t owner) const;
  template <typename Among>
  void CloseOldest(Among among);
  void Close(Listing* listing);
  bool Matches(const Listing& listing, const TokenEntry& entry) const;
  bool IsSeen(const TokenEntry& entry, const Sight& sight) const;

  const Limits* const limits_;
  const FlowTable* const flows_;
  const SessionTable* const sessions_;
  TokenTable* const tokens_;
  uint64_t* const looks_;
  std::vector<std::unique_ptr<Listing>> listings_;
  uint64_t next_id_ = 1;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_LISTINGS_H_
