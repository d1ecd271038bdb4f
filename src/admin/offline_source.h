// OfflineSource: answers from a ledger on disk, without its server.
//
// Thread: one. Every answer is one pass. Tokens stream; sessions, rules, a row a flow and the
// wanted history are held.
#ifndef NOWCALLS_ADMIN_OFFLINE_SOURCE_H_
#define NOWCALLS_ADMIN_OFFLINE_SOURCE_H_

#include <map>
#include <optional>
#include <string>

#include "admin/ledger_walk.h"
#include "admin/progress.h"
#include "admin/source.h"
#include "base/clock.h"
#include "store/ledger_source.h"

namespace nowcalls::admin {

class OfflineSource : public Source {
 public:
  // Both outlive the source. Ages count from `machine`.
  OfflineSource(store::LedgerSource* store, const ClockSample& machine, Progress* progress)
      : store_(store), machine_(machine), progress_(progress) {}

  Result<int64_t> NowMs() override;
  Status Tokens(const RowFilter& filter, const RowSink<wire::TokenRow>& sink) override;
  Status OldestTokens(const RowFilter& filter, size_t limit,
                      const RowSink<wire::TokenRow>& sink) override;
  Status Flows(const RowSink<wire::FlowRow>& sink) override;
  Result<std::vector<wire::FlowRow>> Flow(const FlowChoice& choice) override;
  Result<FlowChoice> FindFlow(const std::string& resource,
                              const std::optional<FlowKind>& kind) override;
  Status Params(int64_t flow_id, size_t limit, bool by_minute,
                const RowSink<wire::ParamRow>& sink) override;
  Status Waiters(const RowFilter& filter, size_t limit,
                 const RowSink<wire::WaiterRow>& sink) override;
  Status Sessions(const RowSink<wire::SessionRow>& sink) override;
  Status History(const HistoryFilter& filter, size_t limit,
                 const RowSink<wire::HistoryRow>& sink) override;
  Status Rules(const std::optional<std::string>& name_space, const RowSink<RuleRow>& sink) override;
  Status Namespaces(const RowSink<wire::NamespaceRow>& sink) override;

 private:
  using FlowRows = std::map<FlowKey, wire::FlowRow>;
  Status CollectFlows(FlowRows* rows, Status* damage);

  store::LedgerSource* store_;
  const ClockSample machine_;
  Progress* progress_;
};

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_OFFLINE_SOURCE_H_
