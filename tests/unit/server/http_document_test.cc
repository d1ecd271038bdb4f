// Against a real web server on the loopback. tests/integration/rule_urls_test.cc has the rest.
#include "server/rules/http_document.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>

#include "support/document_server.h"
#include "support/poll_until.h"

namespace nowcalls::server {
namespace {

using Outcome = Fetched::Outcome;
using Manner = testing::DocumentServer::Manner;

std::unique_ptr<HttpDocument> DocumentAt(const std::string& url,
                                         const HttpDocumentOptions& options = {}) {
  Result<std::unique_ptr<HttpDocument>> made = HttpDocument::Make(url, options);
  REQUIRE(made.ok());
  return *std::move(made);
}

TEST_CASE("Last-Modified is sent back, unless a change could hide behind it") {
  testing::DocumentServer web;
  web.Behave(Manner::kPlain);
  web.Set("[]");
  const auto document = DocumentAt(web.url());
  const auto asked_since = [&](const std::string& modified) {
    web.SetHeader("Last-Modified", modified);
    CHECK(document->Fetch(/*again=*/true).text == "[]");
    CHECK(document->Fetch(/*again=*/false).outcome == Outcome::kRead);
    const auto headers = web.questions().back().headers;
    const auto found = headers.find("if-modified-since");
    return found == headers.end() ? std::string() : found->second;
  };
  CHECK(asked_since("Thu, 01 Jan 2015 00:00:00 GMT") == "Thu, 01 Jan 2015 00:00:00 GMT");
  CHECK(asked_since("Fri, 01 Jan 2100 00:00:00 GMT").empty());
  CHECK(asked_since("yesterday").empty());
}

TEST_CASE("a document has at most so many bytes") {
  testing::DocumentServer web;
  web.Set("0123456789");
  CHECK(DocumentAt(web.url(), {.body_bytes_max = 10})->Fetch(true).text == "0123456789");
  const Fetched longer = DocumentAt(web.url(), {.body_bytes_max = 9})->Fetch(true);
  CHECK(longer.outcome == Outcome::kFailed);
  CHECK(longer.problem == "is longer than 9 bytes");
  // Also where no length is told.
  web.Behave(Manner::kEndless);
  CHECK(DocumentAt(web.url(), {.body_bytes_max = 9})->Fetch(true).problem == longer.problem);
}

TEST_CASE("a request that is under way ends when another thread says so") {
  testing::DocumentServer web;
  web.Behave(Manner::kSilent);
  const auto document = DocumentAt(web.url());
  Fetched fetched{.outcome = Outcome::kRead};
  std::thread fetches([&] { fetched = document->Fetch(true); });
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return !web.questions().empty(); }));
  document->Interrupt();
  fetches.join();
  CHECK(fetched.outcome == Outcome::kInterrupted);
}

TEST_CASE("a host that has no address, and a scheme that curl knows, too") {
  CHECK(DocumentAt("http://no-such-host.invalid/")->Fetch(true).problem.find("cannot be read: ") ==
        0);
  const std::string refused = DocumentAt("file:///etc/hostname")->Fetch(true).problem;
  CHECK_MESSAGE(refused.find("rotocol") != std::string::npos, refused);
}

}  // namespace
}  // namespace nowcalls::server
