#include "core/other_kind.h"

#include <string>

namespace nowcalls::core {

void OtherKind::Note(Flow* flow) {
  flows_->Count(flow, [](TokenCounters* c) { ++c->other_kind; });
  // Logged once a rule: a client that asks so may ask thousands of times.
  if (flow->told_other_kind) return;
  flow->told_other_kind = true;
  const std::string& name_space = flows_->name_space(flow->name_space).name;
  const std::string id = std::to_string(flow->id.value);
  const std::string field = flow->rule->param.has_value() ? "grade or metricType " : "grade ";
  const std::string says = flow->says_rate ? "calls a second (" + field + "1, also the default)"
                                           : "calls in progress (" + field + "0)";
  notices_->AddIfRoom({.topic = LogTopic::kPeer,
                       .text = "namespace " + name_space + ": the rule of " +
                               FlowText(flow->key()) + " says " + says + ", and is asked for " +
                               (flow->says_rate ? "tokens: its count is their level"
                                                : "calls a second: its count limits these"),
                       .fields = {{"namespace", name_space}, {"flow", id, true}}});
}

}  // namespace nowcalls::core
