#include "core/notices.h"

#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/answers.h"

namespace nowcalls::core {
namespace {

// Untaken notices of AddIfRoom.
constexpr size_t kOfManyMax = 1000;

}  // namespace

std::string FlowText(const FlowKey& key) {
  return "flow " + std::to_string(key.id.value) + (key.kind == FlowKind::kValue ? " by value" : "");
}

void Notices::Add(Notice notice) { notices_.push_back(std::move(notice)); }

void Notices::AddIfRoom(Notice notice) {
  if (of_many_ >= kOfManyMax) {
    ++dropped_;
  } else {
    ++of_many_;
    Add(std::move(notice));
  }
}

std::string NoteOf(const AdminAct& act) {
  if (act.principal.empty()) return std::string(act.reason);
  const std::string name(act.principal);
  return Shortened(act.reason.empty() ? name : name + ": " + std::string(act.reason),
                   kReasonBytesMax);
}

void Notices::AddAct(const AdminAct& act, const std::string& text, LogFields fields) {
  std::string who(act.by);
  if (!act.principal.empty()) {
    who = std::string(act.principal) + " at " + who;
    fields.push_back({"principal", std::string(act.principal)});
    fields.push_back({"by", std::string(act.proof)});
    fields.push_back({"method", std::string(act.method)});
  }
  fields.push_back({"peer", std::string(act.by)});
  if (!act.reason.empty()) fields.push_back({"reason", std::string(act.reason)});
  Add({.topic = LogTopic::kAct,
       .text = "administrator " + who + " " + text,
       .fields = std::move(fields)});
}

std::vector<Notice> Notices::Take() {
  // The last line says how many the bound dropped, so none is missed unnoticed.
  if (const uint64_t dropped = std::exchange(dropped_, 0); dropped > 0) {
    Add({.warning = true,
         .text = std::to_string(dropped) + " more notices at once are not shown",
         .fields = {}});
  }
  of_many_ = 0;
  return std::exchange(notices_, {});
}

}  // namespace nowcalls::core
