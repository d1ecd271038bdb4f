#include "web/feed.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/fake_server.h"
#include "support/poll_until.h"
#include "wire/namespace_rows.h"

namespace nowcalls::web {
namespace {

constexpr uint64_t kPages = 3;

// A server with a namespace on each of kPages pages, and with nothing else.
void AnswerLooks(testing::FakeServer::Peer* peer) {
  wire::Envelope request;
  while (peer->Take(&request)) {
    peer->Answer([&](wire::OutputBuffer* out) {
      wire::RequestError error;
      wire::PageParams page;
      switch (request.method) {
        case wire::Method::kNamespaces: {
          CHECK(wire::DecodePage(request.method, request.params, &page, &error));
          wire::NamespaceRow row;
          row.name_space = "n" + std::to_string(page.cursor);
          return wire::EncodeNamespacePage(request.msgid, {row}, (page.cursor + 1) % kPages, out);
        }
        case wire::Method::kFlows: return wire::EncodeFlowPage(request.msgid, {}, 0, out);
        default: return wire::EncodePing(request.msgid, 77, out);
      }
    });
  }
}

TEST_CASE("a look has all namespaces, however many pages they are") {
  const testing::FakeServer server(AnswerLooks);
  Feed feed([] {});
  feed.Start({server.address()});
  CHECK(testing::PollUntil(testing::kPatienceMs,
                           [&] { return feed.latest()->namespaces.size() == kPages; }));
  CHECK(feed.latest()->namespaces.back().name_space == "n2");
  feed.Stop();
}

}  // namespace
}  // namespace nowcalls::web
