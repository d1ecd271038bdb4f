// RuleSource and RuleSink: where rules come from, and what puts them in force.
//
// A source delivers whole rule sets, as Sentinel's JSON, for namespaces. The sink checks a set and
// makes it that of its namespace, or refuses it with a Status that names the rule, the field or
// the owner that stands against it; the old set then stays in force. nowcalls has two sources:
// watched files (--rules) and the RPC (rules_load).
//
// Ownership. Every delivery names its source: "rpc", "file:/etc/nowcalls/shop.json", or whatever a
// source of your own calls itself, 1..4200 bytes of UTF-8 without control characters. The name is
// written into the ledger with the rules, and only one source at a time may replace the rules of a
// namespace: the one that has claimed it since the server started; else "rpc", if its rules came
// that way; else any. A source claims its namespaces in Start, and takes those of "rpc" with
// `takeover` only. tools/manual/rules.md tells operators the consequences.
//
// Threads. Check may be called on any thread, also on several at once; parse there what is large.
// Claim and Replace are for the thread of the server's loop, in which Start and Stop are called
// too.
//
// Installing. The server starts its sources in src/server/configured_rules.cc, before it accepts
// connections. A source of your own goes there too: source.Start(&sink) with a sink that tells the
// engine the time of each call (server::LoopRuleSink). A test that drives an engine says
// source.Start(engine.RulesAt(now)). nowcalls::Embedded takes rules by LoadRules alone.
//
// A source of your own that asks some service for rules, polled by the program that runs the
// server, on the server's thread:
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
//     // A refusal leaves the rules of before in force; the next poll tries again.
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

// The source of rules that came with rules_load.
inline constexpr std::string_view kRpcRuleSource = "rpc";

// "From now on, and as long as the server runs, this namespace takes rules from this source only."
struct RuleClaim {
  std::string_view source;
  std::string_view name_space;
  // Also of a namespace whose rules came by RPC.
  bool takeover = false;
};

class RuleSink {
 public:
  // A set that is valid by itself. Keep it and deliver it again if Replace refused it for a reason
  // that may pass.
  using CheckedSet = std::shared_ptr<const core::RuleSet>;

  virtual ~RuleSink() = default;

  // Thread: any. kInvalidArgument names what is wrong with the source's name, the namespace, or the
  // text: its line, or the rule and field. Time and memory grow linearly with the text.
  virtual Result<CheckedSet> Check(std::string_view source, std::string_view name_space,
                                   std::string_view json) const = 0;

  // Thread: loop. Claiming again what one has claimed already is Ok. kAlreadyExists names the
  // source that owns the namespace; kResourceExhausted when there are too many namespaces.
  virtual Status Claim(const RuleClaim& claim) = 0;

  // Thread: loop. Makes all sets those of their namespaces in one step, or none: a flowId may move
  // from one of the namespaces to another. Ok: in force now, and durable with the server's next
  // commit. kAlreadyExists names the source that owns a namespace, or the namespace that keeps a
  // flowId; kInvalidArgument names what two of the sets have in common; kResourceExhausted names
  // the limit.
  virtual Status Replace(const std::vector<CheckedSet>& sets) = 0;

  // Thread: loop. Tells operators why the namespace's rules are not those that the source has: a
  // set that Check or Replace refused, a service that does not answer. Ok: they are again. A set
  // that Replace puts in force says so by itself.
  virtual void NoteRefused(std::string_view source, std::string_view name_space,
                           const Status& why) = 0;
};

class RuleSource {
 public:
  virtual ~RuleSource() = default;

  // Thread: loop. Called once, before anything is delivered; the sink outlives the source. A
  // failure keeps the server from starting.
  virtual Status Start(RuleSink* sink) = 0;

  // Thread: loop. Nothing is delivered any more.
  virtual void Stop() = 0;
};

}  // namespace nowcalls

#endif  // NOWCALLS_RULE_SOURCE_H_
