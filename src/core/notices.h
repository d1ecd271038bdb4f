// Notices: what the core wants an operator to read in the log, until the engine takes it.
//
// Thread: loop. Every part of the core may add notices; nothing reads them but Take.
#ifndef NOWCALLS_CORE_NOTICES_H_
#define NOWCALLS_CORE_NOTICES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/log_record.h"
#include "nowcalls/flow_kind.h"

namespace nowcalls::core {

struct AdminAct;

// What texts call a flow: "flow 7", "flow 7 by value".
std::string FlowText(const FlowKey& key);

struct Notice {
  bool warning = false;
  LogTopic topic = LogTopic::kServer;
  std::string text;
  LogFields fields;  // Those that are known; the text names them too.
};

class Notices {
 public:
  // For an event that costs a ledger record, changes a set of rules, or happens once in a while.
  // The work of a call bounds how many there are, and the server how many it logs.
  void Add(Notice notice);
  // For an event that may come by the thousand, or costs its cause nothing. Beyond a bound the
  // notice is only counted.
  void AddIfRoom(Notice notice);
  // "administrator HOST:PORT ", then `text`. REQUIRES: the act has changed something that the
  // ledger records.
  void AddAct(const AdminAct& act, const std::string& text, LogFields fields);

  std::vector<Notice> Take();

 private:
  std::vector<Notice> notices_;
  size_t of_many_ = 0;  // Those among them that AddIfRoom let in.
  uint64_t dropped_ = 0;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_NOTICES_H_
