#include "sim/ledger_dump.h"

#include <map>
#include <string>

#include "base/check.h"
#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

class Dumper : public store::LedgerVisitor {
 public:
  Status OnFormat(const ledger::Format&) override { return {}; }
  Status OnClock(const ledger::ClockMark&) override { return {}; }
  Status OnSeal(const ledger::Seal&) override { return {}; }
  Status OnWatermark(int64_t) override { return {}; }
  Status OnRule(const ledger::RuleEntry&) override { return {}; }
  Status OnSession(const ledger::Session& session) override {
    owners_[session.id.value] = OwnerText(session.name_space, session.client_id, session.instance);
    ++dump.sessions;
    return {};
  }
  Status OnHistory(const ledger::HistoryBlock& block) override {
    for (const ledger::HistoryEntry& entry : block) dump.history.insert(entry.token_id.value);
    return {};
  }
  Status OnToken(const ledger::Token& token) override {
    dump.tokens.push_back({.id = token.key.id.value,
                           .fence = token.fence.value,
                           .owner = owners_[token.session.value],
                           .flow = token.param.has_value()
                                       ? LaneOfText(token.flow.value, token.param->bytes)
                                       : token.flow.value,
                           .count = token.count,
                           .request_id = token.request_id});
    return {};
  }

  LedgerDump dump;

 private:
  std::map<uint64_t, std::string> owners_;
};

}  // namespace

LedgerDump DumpLedger(store::LedgerSource* store) {
  Dumper dumper;
  NOWCALLS_CHECK(store->Load(&dumper).ok());
  return std::move(dumper.dump);
}

}  // namespace nowcalls::sim
