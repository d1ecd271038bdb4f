// RuleSource delivers rules; RuleSink puts them in force.
//
// A source delivers whole rule sets of namespaces, as Sentinel's JSON. The sink installs a set, or
// refuses it with a Status that names the rule, the field or the owner; the old set then stays in
// force. Built in: files and URLs (--rules) and the RPC (rules_load).
//
// Ownership. Every delivery names its source: "rpc", "file:/etc/nowcalls/shop.json", or a name of
// your own, 1..4200 bytes of UTF-8 without control characters. The ledger keeps the name with the
// rules. One source at a time may replace the rules of a namespace: the one that claimed it since
// the server started; else "rpc", if its rules came that way; else any. A source claims namespaces
// in Start, those of "rpc" with `takeover` only (tools/manual/rules.md).
//
// Thread: Check: any, also several at once; parse large text there. All else: the server's loop.
// The sink of an embedded service takes all calls on any thread, but not in its callbacks; they
// return when the loop has committed.
//
// Installing. A program gives its sources to nowcalls/server.h or nowcalls/embedded.h, which start
// them before anybody is served.
//
// A source that asks a service for rules; the program polls it with Server::Post:
//
//   class PolledRules final : public RuleSource {
//    public:
//     explicit PolledRules(std::function<std::string()> fetch) : fetch_(std::move(fetch)) {}
//
//     Status Start(RuleSink* sink) override {
//       sink_ = sink;
//       return sink->Claim({.source = kName, .name_space = "shop"});
//     }
//     void Stop() override { sink_ = nullptr; }
//
//     // A refusal leaves the old rules in force; the next poll tries again.
//     Status Poll() {
//       if (sink_ == nullptr) return Status::Ok();
//       std::string json = fetch_();
//       if (json == in_force_) return Status::Ok();
//       const Result<RuleSink::CheckedSet> set = sink_->Check(kName, "shop", json);
//       const Status loaded = set.ok() ? sink_->Replace({*set}) : set.status();
//       sink_->NoteRefused(kName, "shop", loaded);
//       if (loaded.ok()) in_force_ = std::move(json);
//       return loaded;
//     }
//
//    private:
//     static constexpr char kName[] = "inventory:shop";
//     const std::function<std::string()> fetch_;
//     RuleSink* sink_ = nullptr;
//     std::string in_force_;
//   };
#ifndef NOWCALLS_RULE_SOURCE_H_
#define NOWCALLS_RULE_SOURCE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls {

namespace core {
struct RuleSet;  // Opaque to sources.
}  // namespace core

inline constexpr std::string_view kRpcRuleSource = "rpc";

// As long as the server runs, the namespace takes rules from this source only.
struct RuleClaim {
  std::string_view source;
  std::string_view name_space;
  // Also a namespace whose rules came by RPC.
  bool takeover = false;
};

class RuleSink {
 public:
  // Valid by itself. If Replace refuses it for a passing reason, deliver it again.
  using CheckedSet = std::shared_ptr<const core::RuleSet>;

  virtual ~RuleSink() = default;

  // Thread: any. kInvalidArgument names the fault in source, namespace or text (line, or rule and
  // field). Time and memory are linear in the text.
  virtual Result<CheckedSet> Check(std::string_view source, std::string_view name_space,
                                   std::string_view json) const = 0;

  // Thread: loop. A repeated claim is Ok. kAlreadyExists names the owner of the namespace.
  // kResourceExhausted: too many namespaces.
  virtual Status Claim(const RuleClaim& claim) = 0;

  // Thread: loop. Installs all sets in one step, or none: a flowId may move between the namespaces.
  // Ok: in force now, durable with the next commit. kAlreadyExists names the owner of a namespace,
  // or the namespace that keeps a flowId; kInvalidArgument what two sets have in common;
  // kResourceExhausted the limit.
  virtual Status Replace(const std::vector<CheckedSet>& sets) = 0;

  // Thread: loop. Tells operators why the rules in force are not the source's. Ok: they are again;
  // Replace implies it.
  virtual void NoteRefused(std::string_view source, std::string_view name_space,
                           const Status& why) = 0;
};

class RuleSource {
 public:
  virtual ~RuleSource() = default;

  // Thread: loop. Called once, before any delivery; the sink may be used until Stop has returned. A
  // failure keeps the server from starting. It must not wait for a delivery on another thread.
  virtual Status Start(RuleSink* sink) = 0;

  // Thread: loop. No delivery follows.
  virtual void Stop() = 0;
};

}  // namespace nowcalls

#endif  // NOWCALLS_RULE_SOURCE_H_
