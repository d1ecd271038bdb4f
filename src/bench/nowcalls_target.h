// NowcallsTarget: a nowcalls-server with rules loaded by RPC.
//
// Thread: see target.h. More than 256 flows are spread over the namespaces NS, NS.1, NS.2 ....
// Sessions are in NS.
#ifndef NOWCALLS_BENCH_NOWCALLS_TARGET_H_
#define NOWCALLS_BENCH_NOWCALLS_TARGET_H_

#include <memory>
#include <string>
#include <vector>

#include "bench/nowcalls_dialect.h"
#include "bench/sentinel_dialect.h"
#include "bench/target.h"
#include "client/blocking_client.h"

namespace nowcalls::bench {

class NowcallsTarget : public Target {
 public:
  // Of fill: its tokens must outlive its connections.
  static constexpr char kFillClientId[] = "nowcalls-bench-fill";

  explicit NowcallsTarget(const Options& options) : options_(options) {}

  Status Prepare(const std::vector<Flow>& flows) override;
  std::unique_ptr<Dialect> NewDialect(uint32_t lanes) override;
  Status CleanUp() override;

 private:
  Status ReadFacts(client::BlockingClient* client);
  // Of the operation's parameter; empty: none.
  std::vector<std::string> Values() const;
  bool HasValues() const;
  Status LoadRules(const std::string& name_space, const std::string& json,
                   client::BlockingClient* client);

  Options options_;
  double timeout_factor_ = 2;        // A token lives for its rule's resourceTimeout times this.
  std::vector<std::string> loaded_;  // Namespaces.
  std::shared_ptr<NowcallsDialect::Setup> setup_;
};

// Sentinel's JSON of flows[begin..end): ParamFlowRules if `by_value`, else FlowRules. A token lives
// for resourceTimeout x `timeout_factor`. `grade`: 0 tokens, 1 calls a second.
std::string RulesJson(const std::vector<Flow>& flows, size_t begin, size_t end,
                      double timeout_factor, int grade, bool by_value);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_NOWCALLS_TARGET_H_
