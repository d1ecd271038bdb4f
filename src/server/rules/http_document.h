// HttpDocument: a rule document of a web server, by libcurl (http_poll.h says what is asked).
//
// Redirects are not followed, proxies of the environment not asked, names and certificates always
// checked. An answer has bounds of time and bytes, also in its head.
#ifndef NOWCALLS_SERVER_RULES_HTTP_DOCUMENT_H_
#define NOWCALLS_SERVER_RULES_HTTP_DOCUMENT_H_

#include <cstddef>
#include <memory>
#include <string>

#include "base/limits.h"
#include "nowcalls/status.h"
#include "server/rules/http_poll.h"
#include "server/rules/remote_document.h"

namespace nowcalls::server {

struct HttpDocumentOptions {
  int64_t poll_ms = 10'000;
  std::string ca_file{};      // Empty: the machine's authorities.
  std::string header_file{};  // Read before each request; empty: none.
  size_t body_bytes_max = kRulesFileBytesMax;
};

class HttpDocument final : public RemoteDocument {
 public:
  static constexpr size_t kHeadBytesMax = 64 * 1024;
  static constexpr size_t kHeaderFileBytesMax = 16 * 1024;

  // kUnavailable: libcurl does not start.
  static Result<std::unique_ptr<HttpDocument>> Make(const std::string& url,
                                                    const HttpDocumentOptions& options);
  ~HttpDocument() override;

  Fetched Fetch(bool again) override;
  void Interrupt() override;

 private:
  struct Transfer;
  class Curl;

  HttpDocument(const std::string& url, const HttpDocumentOptions& options,
               std::unique_ptr<Curl> curl);
  Status AddHeaders(HttpRequest* request) const;

  const HttpDocumentOptions options_;
  HttpPoll poll_;
  const std::unique_ptr<Curl> curl_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_HTTP_DOCUMENT_H_
