#include "sim/ledger_dump.h"

#include <map>
#include <string>

#include "base/check.h"
#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

class Dumper : public ledger::EntityVisitor {
 public:
  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }

  LedgerDump dump;

 private:
  Status On(const ledger::Session& session) {
    owners_[session.id.value] = OwnerText(session.name_space, session.client_id, session.instance);
    ++dump.sessions;
    return {};
  }
  Status On(const ledger::HistoryBlock& block) {
    for (const ledger::HistoryEntry& entry : block) dump.history.insert(entry.token_id.value);
    return {};
  }
  Status On(const ledger::Token& token) {
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
  Status On(const ledger::Seal& seal) {
    dump.seal_ms = seal.ledger_ms;
    return {};
  }
  Status On(const ledger::ClockMark& mark) {
    dump.boot = mark.machine.boot_id;
    return {};
  }
  Status On(const auto& /*other*/) { return {}; }

  std::map<uint64_t, std::string> owners_;
};

}  // namespace

LedgerDump DumpLedger(store::LedgerSource* store) {
  Dumper dumper;
  NOWCALLS_CHECK(store->Load(&dumper).ok());
  return std::move(dumper.dump);
}

}  // namespace nowcalls::sim
