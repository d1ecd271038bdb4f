// UrlRuleSource: asks etcd and web servers for rules, again and again.
//
// Thread: loop. Each URL has a thread, on which Fetch blocks and the text is parsed. It hands one
// finding over, and asks again when the loop has taken it.
//
// RuleDocuments puts changed sets in force. A set that the sink refuses is tried with every
// finding.
#ifndef NOWCALLS_SERVER_RULES_URL_RULE_SOURCE_H_
#define NOWCALLS_SERVER_RULES_URL_RULE_SOURCE_H_

#include <uv.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "server/config/rule_url.h"
#include "server/rules/remote_document.h"
#include "server/rules/rule_documents.h"

namespace nowcalls::server {

struct UrlRules {
  RuleUrl url;
  std::unique_ptr<RemoteDocument> remote;
  RulesAtStart at_start{};
};

// How lines of the log name it.
std::string UrlDocumentName(const RuleUrl& url);

class UrlRuleSource final : public RuleSource {
 public:
  // `strict`: a set that is warned of is refused.
  UrlRuleSource(uv_loop_t* loop, std::vector<UrlRules> urls, bool takeover, bool strict,
                RuleDocuments::Log log);
  // REQUIRES: Stop was called, and all handles are closed. Waits for the threads.
  ~UrlRuleSource() override;
  UrlRuleSource(const UrlRuleSource&) = delete;
  UrlRuleSource& operator=(const UrlRuleSource&) = delete;

  // Claims the namespaces.
  Status Start(RuleSink* sink) override;
  void Stop() override;

  // Asks all URLs now, and logs the results.
  void ReloadAll();

  // No thread runs.
  bool idle() const;

 private:
  struct Finding {
    bool asked = false;  // By ReloadAll.
    Fetched fetched{};
    RuleContent content{};  // With Fetched::kRead.
  };

  struct Url {
    RuleDocument document;  // The loop's.
    std::unique_ptr<RemoteDocument> remote;
    std::thread thread{};
    // Guarded by mutex_.
    bool asked = false;
    uint64_t fingerprint = 0;  // The document's.
    bool awaits_loop = false;  // The finding is not taken in yet.
    std::unique_ptr<Finding> finding{};
  };

  void Run(Url* url);
  bool BeginLook(Url* url, Finding* finding);
  void HandOver(Url* url, std::unique_ptr<Finding> finding);
  void Collect();
  void TakeIn(Url* url, const Finding& finding);

  const bool takeover_;
  const bool strict_;
  RuleDocuments documents_;
  std::vector<std::unique_ptr<Url>> urls_;
  uv_async_t async_{};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;  // Guarded by mutex_, as is the next.
  size_t running_ = 0;    // Threads.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_URL_RULE_SOURCE_H_
