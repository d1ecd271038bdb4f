#include "server/rules/url_rule_source.h"

#include <chrono>
#include <utility>

#include "base/background_thread.h"
#include "base/check.h"
#include "base/fingerprint.h"
#include "base/quiet_thread.h"

namespace nowcalls::server {

std::string UrlDocumentName(const RuleUrl& url) { return "source " + url.url; }

UrlRuleSource::UrlRuleSource(uv_loop_t* loop, std::vector<UrlRules> urls, bool takeover,
                             bool strict, RuleDocuments::Log log)
    : takeover_(takeover), strict_(strict), documents_(std::move(log)) {
  for (UrlRules& rules : urls) {
    const RuleUrl& url = rules.url;
    urls_.push_back(std::make_unique<Url>(
        Url{.document = RuleDocument(url.name_space, url.url, UrlDocumentName(url),
                                     LogField{"url", url.url}, rules.at_start),
            .remote = std::move(rules.remote),
            .fingerprint = rules.at_start.fingerprint}));
  }
  async_.data = this;
  NOWCALLS_CHECK(uv_async_init(loop, &async_, [](uv_async_t* async) {
                   static_cast<UrlRuleSource*>(async->data)->Collect();
                 }) == 0);
}

UrlRuleSource::~UrlRuleSource() {
  NOWCALLS_CHECK(stopped_);
  for (const auto& url : urls_) {
    if (url->thread.joinable()) url->thread.join();
  }
}

Status UrlRuleSource::Start(RuleSink* sink) {
  std::vector<RuleDocument*> documents;
  for (const auto& url : urls_) documents.push_back(&url->document);
  NOWCALLS_RETURN_IF_ERROR(documents_.Start(sink, documents, takeover_));
  for (const auto& url : urls_) {
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    Result<std::thread> thread = StartQuietThread([this, url = url.get()] { Run(url); });
    if (!thread.ok()) {
      const std::lock_guard lock(mutex_);
      --running_;
      return thread.status();
    }
    url->thread = *std::move(thread);
  }
  return Status::Ok();
}

void UrlRuleSource::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    // Under the lock: no thread wakes a handle that is closed.
    uv_close(reinterpret_cast<uv_handle_t*>(&async_), nullptr);
  }
  changed_.notify_all();
  for (const auto& url : urls_) url->remote->Interrupt();
}

void UrlRuleSource::ReloadAll() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    for (const auto& url : urls_) url->asked = true;
  }
  changed_.notify_all();
  for (const auto& url : urls_) url->remote->Interrupt();
}

bool UrlRuleSource::idle() const {
  const std::lock_guard lock(mutex_);
  return running_ == 0;
}

// Thread: the URL's.
void UrlRuleSource::Run(Url* url) {
  UseCpusOfProcess();
  StepBack();
  while (true) {
    auto finding = std::make_unique<Finding>();
    if (!BeginLook(url, finding.get())) break;
    finding->fetched = url->remote->Fetch(finding->asked);
    if (finding->fetched.outcome == Fetched::Outcome::kRead) {
      finding->content.fingerprint = Fingerprint(finding->fetched.text);
      finding->content.Check(*documents_.sink(), finding->fetched.text, strict_);
      finding->fetched.text = {};
    }
    HandOver(url, std::move(finding));
  }
  const std::lock_guard lock(mutex_);
  --running_;
}

// Thread: the URL's. Waits until the loop has taken the finding before. False: it is the end.
bool UrlRuleSource::BeginLook(Url* url, Finding* finding) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || !url->awaits_loop; });
  if (stopped_) return false;
  finding->asked = std::exchange(url->asked, false);
  finding->content.name_space = url->document.name_space;
  finding->content.source = url->document.source;
  finding->content.fingerprint_before = url->fingerprint;
  finding->content.again = finding->asked;
  return true;
}

// Thread: the URL's. Then pauses, until somebody asks.
void UrlRuleSource::HandOver(Url* url, std::unique_ptr<Finding> finding) {
  std::unique_lock lock(mutex_);
  if (stopped_) return;
  if (finding->fetched.outcome == Fetched::Outcome::kInterrupted) {
    url->asked = url->asked || finding->asked;
    return;
  }
  const std::chrono::milliseconds pause(finding->fetched.pause_ms);
  url->finding = std::move(finding);
  url->awaits_loop = true;
  NOWCALLS_CHECK(uv_async_send(&async_) == 0);
  changed_.wait_for(lock, pause, [&] { return stopped_ || url->asked; });
}

void UrlRuleSource::Collect() {
  std::vector<std::pair<Url*, std::unique_ptr<Finding>>> found;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    for (const auto& url : urls_) {
      if (url->finding != nullptr) found.emplace_back(url.get(), std::move(url->finding));
    }
  }
  RuleDocuments::Reloaded reloaded;
  for (const auto& [url, finding] : found) {
    TakeIn(url, *finding);
    if (finding->asked) reloaded.insert(&url->document);
  }
  documents_.Deliver(reloaded);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [url, finding] : found) {
      url->fingerprint = url->document.fingerprint;
      url->awaits_loop = false;
    }
  }
  changed_.notify_all();
}

void UrlRuleSource::TakeIn(Url* url, const Finding& finding) {
  using Outcome = Fetched::Outcome;
  const Fetched& fetched = finding.fetched;
  RuleDocument* const document = &url->document;
  RuleDocuments::BeginLook(document,
                           fetched.outcome == Outcome::kFailed ? 0
                           : fetched.outcome == Outcome::kRead ? finding.content.fingerprint
                                                               : document->fingerprint,
                           finding.asked);
  if (fetched.outcome == Outcome::kFailed) {
    return documents_.Trouble(document, fetched.problem + "; " + kBeforeStay, finding.asked);
  }
  documents_.Take(document, finding.content);
}

}  // namespace nowcalls::server
