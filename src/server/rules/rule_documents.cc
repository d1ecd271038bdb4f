#include "server/rules/rule_documents.h"

#include <map>
#include <utility>

#include "base/counted.h"
#include "base/text.h"
#include "core/core.h"
#include "core/rules/rule_set.h"

namespace nowcalls::server {
namespace {

// Rounds of trying sets one by one: a set in force may make room for another.
constexpr int kRoundsMax = 4;

}  // namespace

void RuleContent::Check(const RuleSink& sink, const std::string& text, bool strict) {
  // Content decides: times can stand still between two writes.
  changed = fingerprint != fingerprint_before || again;
  if (!changed) return;
  Result<RuleSink::CheckedSet> checked = sink.Check(source, name_space, text);
  invalid = checked.ok() && strict ? (*checked)->parsed.CheckStrict() : checked.status();
  if (invalid.ok()) set = *std::move(checked);
}

RuleDocument::RuleDocument(std::string of, std::string from, std::string named, LogField as,
                           const RulesAtStart& at_start)
    : name_space(std::move(of)),
      source(std::move(from)),
      name(std::move(named)),
      field(std::move(as)) {
  // Content in force is not loaded again. Refused content is tried again, and not logged again.
  (at_start.is_refused ? told.emplace() : fingerprint) = at_start.fingerprint;
}

Status RuleDocuments::Start(RuleSink* sink, const std::vector<RuleDocument*>& documents,
                            bool takeover) {
  sink_ = sink;
  documents_ = documents;
  for (const RuleDocument* document : documents_) {
    NOWCALLS_RETURN_IF_ERROR(sink_->Claim(
        {.source = document->source, .name_space = document->name_space, .takeover = takeover}));
  }
  return Status::Ok();
}

void RuleDocuments::BeginLook(RuleDocument* document, uint64_t content, bool asked) {
  if (asked || content != document->told.value_or(content)) document->told.reset();
}

void RuleDocuments::Take(RuleDocument* document, const RuleContent& content) {
  const bool was_in_trouble = !std::exchange(document->trouble, {}).empty();
  // The content in force, or the content refused: nothing to do but to end a trouble.
  if (!content.changed) {
    if (!was_in_trouble) return;
    LogOf(*document, Severity::kInfo, "is back, unchanged");
    return sink_->NoteRefused(document->source, document->name_space, Status::Ok());
  }
  document->fingerprint = content.fingerprint;
  document->waiting = content.set;
  if (!content.invalid.ok()) Refused(document, content.invalid, /*again=*/true);
}

// A document without content is no better than a refused one: it forgets its set.
void RuleDocuments::Trouble(RuleDocument* document, const std::string& what, bool asked) {
  Forget(document);
  if (Complain(document, what, &document->trouble, asked)) {
    sink_->NoteRefused(document->source, document->name_space,
                       Status::Unavailable("the " + document->name + " " + what));
  }
}

void RuleDocuments::Ignore(RuleDocument* document, const std::string& what, bool asked) {
  Forget(document);
  Complain(document, what, &document->trouble, asked);
}

// A set that waits or was refused goes with its content. Content that an operator deleted must not
// come into force later; the same content, put back, counts as new.
void RuleDocuments::Forget(RuleDocument* document) {
  document->waiting.reset();
  if (!std::exchange(document->refusal, {}).empty()) document->fingerprint = 0;
}

void RuleDocuments::Deliver(const Reloaded& reloaded) {
  std::vector<RuleDocument*> documents;
  std::vector<RuleSink::CheckedSet> sets;
  for (RuleDocument* document : documents_) {
    if (document->waiting == nullptr) continue;
    documents.push_back(document);
    sets.push_back(document->waiting);
  }
  if (documents.empty()) return;
  // Together: flows may move from one document to another in one step.
  const Status together = sink_->Replace(sets);
  if (!together.ok()) {
    if (documents.size() > 1) return DeliverEachAlone(std::move(documents), reloaded);
    return Refused(documents[0], together, reloaded.contains(documents[0]));
  }
  for (RuleDocument* document : documents) InForce(document, reloaded.contains(document));
}

// A set that is refused does not hold the others up.
void RuleDocuments::DeliverEachAlone(std::vector<RuleDocument*> documents,
                                     const Reloaded& reloaded) {
  std::map<RuleDocument*, Status> refused;
  for (int round = 0; round < kRoundsMax; ++round) {
    const size_t before = documents.size();
    std::erase_if(documents, [&](RuleDocument* document) {
      refused[document] = sink_->Replace({document->waiting});
      if (refused[document].ok()) InForce(document, reloaded.contains(document));
      return refused[document].ok();
    });
    if (documents.empty() || documents.size() == before) break;
  }
  for (RuleDocument* document : documents) {
    Refused(document, refused[document], reloaded.contains(document));
  }
}

void RuleDocuments::InForce(RuleDocument* document, bool reloaded) const {
  LogOf(*document, Severity::kInfo,
        (reloaded ? "reloaded, " : "loaded, ") +
            Counted(document->waiting->parsed.rules.size(), "rule") + " of namespace " +
            Quoted(document->name_space) + " in force");
  document->waiting.reset();
  document->refusal.clear();
}

void RuleDocuments::Refused(RuleDocument* document, const Status& why, bool again) {
  if (Complain(document, why.message() + "; " + kBeforeStay, &document->refusal, again)) {
    sink_->NoteRefused(document->source, document->name_space, why);
  }
}

// A lasting fault is new once, or when somebody asks. It is logged then, unless the start has.
bool RuleDocuments::Complain(RuleDocument* document, const std::string& what, std::string* before,
                             bool again) const {
  const bool told = std::exchange(document->told, std::nullopt).has_value();
  const bool is_new = std::exchange(*before, what) != what || again;
  if (is_new && !told) LogOf(*document, Severity::kWarn, what, {{"reason", what}});
  return is_new;
}

void RuleDocuments::LogOf(const RuleDocument& document, Severity severity, const std::string& text,
                          LogFields fields) const {
  fields.push_back({"namespace", document.name_space});
  fields.push_back(document.field);
  log_(severity, "rule " + document.name + ": " + text, fields);
}

}  // namespace nowcalls::server
