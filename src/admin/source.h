// Source: answers from a running server or a ledger on disk.
//
// Thread: one. A failing sink ends the walk, which returns the failure. Both sources deliver the
// same rows; offline lacks what only a server knows (wire/rows.h).
#ifndef NOWCALLS_ADMIN_SOURCE_H_
#define NOWCALLS_ADMIN_SOURCE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/columns.h"
#include "base/duration.h"
#include "base/text.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/status.h"
#include "wire/namespace_rows.h"
#include "wire/rows.h"

namespace nowcalls::admin {

// None of `param`: a rule of the flow.
inline bool IsOfKind(const std::optional<ParamValue>& param, const std::optional<FlowKind>& kind) {
  return !kind.has_value() || *kind == FlowKindIf(param.has_value());
}

// kNotFound.
inline Status NoSuchFlow(const FlowChoice& choice) {
  return Status::NotFound("flow " + std::to_string(choice.id.value) +
                          (choice.kind == FlowKind::kValue ? " by value" : "") +
                          " has neither a rule nor tokens");
}

inline constexpr std::string_view kNoRuleAndTokens = " has neither a rule nor tokens";

// kNotFound.
inline Status NoSuchFlow(const std::string& resource, const std::optional<FlowKind>& kind) {
  const char* const by_value = kind == FlowKind::kValue ? " by value" : "";
  return Status::NotFound("flow " + Quoted(resource) + by_value + std::string(kNoRuleAndTokens));
}

// Of tokens; flows and waiters, by the fields that they have.
struct RowFilter {
  std::optional<int64_t> flow_id = std::nullopt;
  std::optional<FlowKind> kind = std::nullopt;
  std::optional<std::string> client_id = std::nullopt;
  std::optional<std::string> name_space = std::nullopt;
  int64_t min_age_ms = 0;
  std::optional<uint64_t> instance = std::nullopt;  // Of the client id.

  bool Matches(const wire::TokenRow& row, int64_t now_ms) const {
    return (!flow_id.has_value() || row.flow_id == *flow_id) && IsOfKind(row.param, kind) &&
           (!client_id.has_value() || row.client_id == *client_id) &&
           (!name_space.has_value() || row.name_space == *name_space) &&
           (!instance.has_value() || row.instance.value_or(0) == *instance) &&
           (min_age_ms == 0 || MsSince(row.issued_ms, now_ms) >= min_age_ms);
  }
};

struct HistoryFilter {
  std::optional<int64_t> flow_id = std::nullopt;
  std::optional<FlowKind> kind = std::nullopt;
  std::optional<std::string> client_id = std::nullopt;
  std::optional<std::string> name_space = std::nullopt;
  std::optional<std::string> reason = std::nullopt;  // EndReasonName.
  // Since its end.
  std::optional<int64_t> max_age_ms = std::nullopt;
  int64_t min_age_ms = 0;

  bool NeedsNow() const { return max_age_ms.has_value() || min_age_ms > 0; }
  // Then so is all that ended before.
  bool IsTooOld(const wire::HistoryRow& row, int64_t now_ms) const {
    return max_age_ms.has_value() && MsSince(row.ended_ms, now_ms) > *max_age_ms;
  }
  bool Matches(const wire::HistoryRow& row, int64_t now_ms) const {
    return (!flow_id.has_value() || row.flow_id == *flow_id) && IsOfKind(row.param, kind) &&
           (!client_id.has_value() || row.client_id == *client_id) &&
           (!name_space.has_value() || row.name_space == *name_space) &&
           (!reason.has_value() || row.reason == *reason) && !IsTooOld(row, now_ms) &&
           (min_age_ms == 0 || MsSince(row.ended_ms, now_ms) >= min_age_ms);
  }
};

template <typename Row>
using RowSink = std::function<Status(const Row& row)>;

// Errors: kUnavailable and kOutcomeUnknown from a server, kCorruption and kIoError from a ledger. A
// damaged ledger delivers every readable row before kCorruption.
class Source {
 public:
  virtual ~Source() = default;

  // The ledger clock, for ages and times left.
  virtual Result<int64_t> NowMs() = 0;

  // In no particular order; constant memory.
  virtual Status Tokens(const RowFilter& filter, const RowSink<wire::TokenRow>& sink) = 0;
  // Oldest first.
  virtual Status OldestTokens(const RowFilter& filter, size_t limit,
                              const RowSink<wire::TokenRow>& sink) = 0;
  // With a rule or a live token, by id, the rule of the flow first.
  virtual Status Flows(const RowSink<wire::FlowRow>& sink) = 0;
  // One row, or two if no kind is chosen. kNotFound: neither rule nor token.
  virtual Result<std::vector<wire::FlowRow>> Flow(const FlowChoice& choice) = 0;
  // The flow whose rule has the resource, in force before removed; of no kind if both have it.
  // kNotFound: none. kInvalidArgument: several, with their numbers.
  virtual Result<FlowChoice> FindFlow(const std::string& resource,
                                      const std::optional<FlowKind>& kind) = 0;
  // The most used by nowCalls, of a server at most kListRowsMax; offline held ones. kNotFound as of
  // Flow. `by_minute`: equal ones by calls of the last minute.
  virtual Status Params(int64_t flow_id, size_t limit, bool by_minute,
                        const RowSink<wire::ParamRow>& sink) = 0;
  // By flow id and place; of the filter flow_id, kind and client_id count. kFailedPrecondition
  // offline: a ledger has no waiters.
  virtual Status Waiters(const RowFilter& filter, size_t limit,
                         const RowSink<wire::WaiterRow>& sink) = 0;
  // By session id.
  virtual Status Sessions(const RowSink<wire::SessionRow>& sink) = 0;
  // The last matching ends, newest first.
  virtual Status History(const HistoryFilter& filter, size_t limit,
                         const RowSink<wire::HistoryRow>& sink) = 0;
  // By flow id; of all namespaces if none is given.
  virtual Status Rules(const std::optional<std::string>& name_space,
                       const RowSink<RuleRow>& sink) = 0;
  // By name.
  virtual Status Namespaces(const RowSink<wire::NamespaceRow>& sink) = 0;
};

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_SOURCE_H_
