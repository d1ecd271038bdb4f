// RuleDocuments: the documents of one rule source, on their way into force.
//
// Thread: loop, unless a comment says otherwise.
//
// Sets that are new are put in force together: flows may move between documents. A set that the
// sink refuses is tried with every Deliver. The rules of before stay as long as something is wrong;
// the log says so once for each fault.
#ifndef NOWCALLS_SERVER_RULES_RULE_DOCUMENTS_H_
#define NOWCALLS_SERVER_RULES_RULE_DOCUMENTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log_record.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "server/log/log_line.h"

namespace nowcalls::server {

inline constexpr char kBeforeStay[] = "the rules of before stay in force";

// A document as the start of the server found it.
struct RulesAtStart {
  uint64_t fingerprint = 0;  // Of its content (base/fingerprint.h); 0: it could not be read.
  bool is_refused = false;   // It is not in force, and the log has told why.
};

// Content that was read, and what was found.
struct RuleContent {
  std::string name_space;
  std::string source;
  uint64_t fingerprint_before = 0;
  bool again = false;  // To be loaded, changed or not.
  uint64_t fingerprint = 0;

  bool changed = false;  // Another content than before, or `again`.
  Status invalid{};      // What is wrong with it.
  RuleSink::CheckedSet set{};

  // Thread: any. Fills in what was found. `strict`: a set that is warned of is invalid.
  void Check(const RuleSink& sink, const std::string& text, bool strict);
};

// The whole rule set of its namespace.
struct RuleDocument {
  // `name`: "file /etc/nowcalls/shop.json". `field` names it in JSON lines.
  RuleDocument(std::string of, std::string from, std::string named, LogField as,
               const RulesAtStart& at_start);

  const std::string name_space;
  const std::string source;  // nowcalls/rule_source.h
  const std::string name;
  const LogField field;
  uint64_t fingerprint = 0;  // Of the content that was last loaded or refused.
  // Of the fault that the start logged, while it lasts; 0 as there.
  std::optional<uint64_t> told;
  RuleSink::CheckedSet waiting;  // Valid, and not in force yet.
  // Faults of document and content, as logged; empty: none.
  std::string trouble;
  std::string refusal;
};

class RuleDocuments {
 public:
  using Log =
      std::function<void(Severity severity, const std::string& text, const LogFields& fields)>;
  using Reloaded = std::set<const RuleDocument*>;

  explicit RuleDocuments(Log log) : log_(std::move(log)) {}

  // Claims the namespaces of all documents.
  Status Start(RuleSink* sink, const std::vector<RuleDocument*>& documents, bool takeover);
  RuleSink* sink() const { return sink_; }

  // Before one of the three below: `content` is its fingerprint, 0 if there is none. A fault that
  // the start has logged is logged again only for other content, or when somebody asked.
  static void BeginLook(RuleDocument* document, uint64_t content, bool asked);
  // Content is there. Deliver follows.
  void Take(RuleDocument* document, const RuleContent& content);
  // There is none: `what` completes "the file /etc/nowcalls/shop.json ...".
  void Trouble(RuleDocument* document, const std::string& what, bool asked);
  // The same, and operators need not do anything.
  void Ignore(RuleDocument* document, const std::string& what, bool asked);

  // Puts sets in force that are new, and those that were refused before: the reason may have gone.
  // `reloaded`: somebody asked for them.
  void Deliver(const Reloaded& reloaded);

 private:
  void DeliverEachAlone(std::vector<RuleDocument*> documents, const Reloaded& reloaded);
  void InForce(RuleDocument* document, bool reloaded) const;
  void Refused(RuleDocument* document, const Status& why, bool again);
  static void Forget(RuleDocument* document);
  bool Complain(RuleDocument* document, const std::string& what, std::string* before,
                bool again) const;
  void LogOf(const RuleDocument& document, Severity severity, const std::string& text,
             LogFields fields = {}) const;

  const Log log_;
  RuleSink* sink_ = nullptr;
  std::vector<RuleDocument*> documents_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_RULE_DOCUMENTS_H_
