// EntityVisitor: receives a ledger, entity by entity.
//
// Thread: one.
#ifndef NOWCALLS_LEDGER_ENTITY_VISITOR_H_
#define NOWCALLS_LEDGER_ENTITY_VISITOR_H_

#include <string>
#include <variant>

#include "ledger/entities.h"
#include "ledger/families.h"
#include "ledger/history_entry.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

// In the order of a visit. A namespace precedes its rules; blocks of the history and rates ascend
// by key; tokens come in any order.
using Entity = std::variant<const Format*, const ClockMark*, const Seal*, const Watermark*,
                            const NamespaceEntry*, const RuleEntry*, const Session*,
                            const HistoryBlock*, const RateBucket*, const Token*>;

template <typename T>
const T* As(const Entity& entity) {
  const auto* const found = std::get_if<const T*>(&entity);
  return found == nullptr ? nullptr : *found;
}

// A record that does not decode, or is missing.
struct BadRecord {
  Family family;
  std::string key;  // In hexadecimal, of a long one the beginning; empty: there is no record.
  Status why;

  // With its place: "tokens_short, key 0000...: token value: fence is 0".
  Status WithPlace() const {
    if (key.empty()) return why;
    return why.WithContext(std::string(FamilyName(family)) + ", key " + key);
  }
};

class EntityVisitor {
 public:
  virtual ~EntityVisitor() = default;

  // `entity` lasts for the call. A failure ends the visit with it.
  virtual Status OnEntity(const Entity& entity) = 0;
  // After Ok the visit goes on.
  virtual Status OnBadRecord(const BadRecord& record) { return record.WithPlace(); }
  // `family` is damaged; its later records are not shown. After Ok the next family follows.
  virtual Status OnUnreadable(Family /*family*/, Status what) { return what; }
};

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_ENTITY_VISITOR_H_
