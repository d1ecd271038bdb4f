#include "core/log_ends.h"

#include <string>
#include <utility>

#include "base/param_text.h"
#include "core/books.h"

namespace nowcalls::core {
namespace {

LogField Number(const char* name, int64_t value) { return {name, std::to_string(value), true}; }

}  // namespace

void NoteEnd(const Books& books, TokenSlot slot, int64_t now_ms, const TokenEnd& end,
             Notices* notices) {
  const TokenEntry& entry = books.tokens().at(slot);
  const SessionState& session = books.sessions().at(entry.session_slot);
  const FlowId flow = books.flows().at(entry.flow_slot).id;
  const std::string& name_space = books.flows().name_space(session.name_space).name;
  // The namespace is that of the session that holds the token, not of the rule.
  if (!books.options().log_ends.Has(flow, name_space)) return;

  // Text and fields say the same: the text for a reader, the fields for JSON. Rare facts (outcome,
  // instance, param) are left out where they say nothing.
  const std::string token = std::to_string(books.IdOf(entry).value);
  const std::string reason_word(EndReasonName(end.reason));
  const std::string outcome_word(CallOutcomeName(end.outcome));
  const bool ended_well = end.outcome == CallOutcome::kOk;
  const int64_t held_ms = now_ms - entry.issued_ms;
  const std::string instance =
      session.instances() > 1 ? ", instance " + std::to_string(session.instance) : "";
  Notice notice{.topic = LogTopic::kEnd,
                .text = "token " + token + " of flow " + std::to_string(flow.value) +
                        " from client " + session.client_id + instance + " of namespace " +
                        name_space + " ended: " + reason_word +
                        (ended_well ? "" : ", call " + outcome_word) + " after " +
                        std::to_string(held_ms) + " ms",
                .fields = {{"token", token},
                           Number("flow", flow.value),
                           {"namespace", name_space},
                           {"client", session.client_id},
                           Number("count", entry.count),
                           Number("fence", static_cast<int64_t>(entry.fence)),
                           {"reason", reason_word},
                           Number("held_ms", held_ms),
                           Number("issued_ms", entry.issued_ms)}};
  if (!ended_well) notice.fields.push_back({"outcome", outcome_word});
  if (session.instances() > 1) {
    notice.fields.push_back({"instance", std::to_string(session.instance)});
  }
  if (const KeySlot key = books.tokens().KeyOf(slot); key != kNoKey) {
    notice.fields.push_back({"param", ParamText(books.flows().keys().at(key).value.view())});
  }
  notices->Add(std::move(notice));
}

}  // namespace nowcalls::core
