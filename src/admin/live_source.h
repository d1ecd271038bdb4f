// LiveSource: answers from a running server, page by page.
//
// Thread: one. A listing that pauses longer than the server's listing_idle_ms loses its cursor and
// fails.
#ifndef NOWCALLS_ADMIN_LIVE_SOURCE_H_
#define NOWCALLS_ADMIN_LIVE_SOURCE_H_

#include <optional>
#include <string>

#include "admin/progress.h"
#include "admin/source.h"
#include "client/blocking_client.h"

namespace nowcalls::admin {

// As Source::Flow.
Result<std::vector<wire::FlowRow>> AskFlow(const FlowChoice& choice,
                                           client::BlockingClient* client);

class LiveSource : public Source {
 public:
  // Both outlive the source.
  LiveSource(client::BlockingClient* client, Progress* progress)
      : client_(client), progress_(progress) {}

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
  // Oldest first.
  Status ListTokens(const RowFilter& filter, size_t limit, const RowSink<wire::TokenRow>& sink);

  client::BlockingClient* client_;
  Progress* progress_;
};

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_LIVE_SOURCE_H_
