// Rows of `namespaces`: golden bytes in both directions, and answers that are none.
#include "wire/namespace_rows.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/wire/golden_vectors.h"
#include "wire/client_messages.h"

namespace nowcalls::wire {
namespace {

const std::vector<NamespaceRow>& SampleRows() {
  static const std::vector<NamespaceRow> rows = {
      {.name_space = "shop",
       .source = "file:/etc/nowcalls/shop.json",
       .rules = 5,
       .sessions = 3,
       .sessions_online = 2},
      {.name_space = "default", .source = {}, .rules = 0, .sessions = 1, .sessions_online = 1}};
  return rows;
}

TEST_CASE("namespaces has its golden bytes, asked and answered") {
  CheckBytes(Requests(), "namespaces",
             [](auto* o) { EncodePageRequest(17, Method::kNamespaces, {}, o); });
  CheckBytes(Replies(), "namespaces", [](auto* o) { EncodeNamespacePage(17, SampleRows(), 7, o); });
}

TEST_CASE("the golden namespaces are read on both sides") {
  RequestError error;
  PageParams params;
  REQUIRE(
      DecodePage(Method::kNamespaces, Params("namespaces", Method::kNamespaces), &params, &error));
  const auto page = DecodeNamespacePage(ResultOf("namespaces"));
  REQUIRE(page.ok());
  CHECK(page->rows == SampleRows());
  CHECK(page->next_cursor == 7);
}

TEST_CASE("a row read offline leaves out what only a server knows") {
  NamespaceRow row = SampleRows()[0];
  row.sessions_online.reset();
  OutputBuffer out;
  EncodeNamespacePage(1, {row}, 0, &out);
  const auto page = DecodeNamespacePage(DecodeResponse(out.view())->result);
  REQUIRE(page.ok());
  CHECK(page->rows == std::vector<NamespaceRow>{row});
  CHECK(page->next_cursor == 0);
}

TEST_CASE("a row tells how the last loads went, where there were some") {
  NamespaceRow row = SampleRows()[0];
  row.loaded_ms = 1000;
  row.refused_ms = 2000;
  row.refusal = "rule 1: count must be >= 0";
  row.warnings = 3;
  row.requests_max = 30'000;
  OutputBuffer out;
  EncodeNamespacePage(1, {row}, 0, &out);
  const auto page = DecodeNamespacePage(DecodeResponse(out.view())->result);
  REQUIRE(page.ok());
  CHECK(page->rows == std::vector<NamespaceRow>{row});
}

TEST_CASE("an answer that is no page of namespaces is refused by field") {
  CHECK(DecodeNamespacePage("\x01").status().code() == StatusCode::kCorruption);
  const std::string bad_rules("\x92\x91\x81\xa5rules\xa1x\xc0", 12);
  CHECK(DecodeNamespacePage(bad_rules).status().message().find("rules must be an integer") !=
        std::string::npos);
}

}  // namespace
}  // namespace nowcalls::wire
