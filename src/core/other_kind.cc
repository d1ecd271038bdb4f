#include "core/other_kind.h"

#include <string>

namespace nowcalls::core {

void OtherKind::Note(Flow* flow) {
  books_->Count(flow, [](FlowCounters* c) { ++c->other_kind; });
  if (flow->told_other_kind) return;
  flow->told_other_kind = true;
  const std::string& name_space = books_->flows().name_space(flow->name_space).name;
  const std::string id = std::to_string(flow->id.value);
  const std::string says = std::string(flow->rule->param.has_value() ? "metric " : "grade ") +
                           (flow->says_rate ? "1, calls a second" : "0, calls in progress");
  notices_->AddIfRoom({.topic = LogTopic::kPeer,
                       .text = "namespace " + name_space + ": the rule of flow " + id + " has " +
                               says + ", and is asked for " +
                               (flow->says_rate ? "tokens: its count is their level"
                                                : "calls a second: its count limits these"),
                       .fields = {{"namespace", name_space}, {"flow", id, true}}});
}

}  // namespace nowcalls::core
