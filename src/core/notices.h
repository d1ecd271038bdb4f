// Notices: lines for the operator's log, until the engine takes them.
//
// Thread: loop.
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

// For the history: "checkout: hung job", or the reason alone; at most kReasonBytesMax.
std::string NoteOf(const AdminAct& act);

// "flow 7", "flow 7 by value".
std::string FlowText(const FlowKey& key);

struct Notice {
  bool warning = false;
  LogTopic topic = LogTopic::kServer;
  std::string text;
  LogFields fields;  // As far as known; the text has them, too.
};

class Notices {
 public:
  // For events that cost a record, change rules, or are rare. A call's work bounds them.
  void Add(Notice notice);
  // Beyond a bound they are only counted.
  void AddIfRoom(Notice notice);
  // "administrator HOST:PORT ", or "administrator NAME at HOST:PORT ", then `text`. REQUIRES: the
  // act changed something that is recorded.
  void AddAct(const AdminAct& act, const std::string& text, LogFields fields);

  std::vector<Notice> Take();

 private:
  std::vector<Notice> notices_;
  size_t of_many_ = 0;  // Of AddIfRoom.
  uint64_t dropped_ = 0;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_NOTICES_H_
