#include "admin/paging.h"

#include <doctest/doctest.h>

namespace nowcalls::admin {
namespace {

// Pages of so many rows, with a new cursor each, until the paging ends.
Status Endless(Paging paging, size_t rows) {
  for (uint64_t cursor = 1;; ++cursor) {
    Status status = paging.Take(rows, cursor);
    if (!status.ok()) return status;
  }
}

TEST_CASE("a listing of small pages without end is left") {
  const Status status = Endless(Paging("namespaces"), 1);
  CHECK(status.code() == StatusCode::kOutcomeUnknown);
  CHECK(status.message() ==
        "the server's answers to namespaces lead nowhere: 1112 pages had fewer than 10 rows, and "
        "there are more");
  CHECK(!Endless(Paging("flows"), 0).ok());
  CHECK(!Endless(Paging::OfTokens(/*may_be_sparse=*/true), 9).ok());
}

TEST_CASE("a listing of full pages without end is left when no server has so many rows") {
  CHECK(Endless(Paging("flows"), 1000).message() ==
        "the server's answers to flows lead nowhere: there are more than 800000 rows");
  CHECK(Endless(Paging("rules_list"), 1000).message() ==
        "the server's answers to rules_list lead nowhere: there are more than 400000 rows");
  CHECK(Endless(Paging("sessions"), 1000).message() ==
        "the server's answers to sessions lead nowhere: there are more than 2000000 rows");
}

TEST_CASE("a server with a thousand million tokens is listed to its end") {
  Paging paging = Paging::OfTokens(/*may_be_sparse=*/false);
  for (uint64_t cursor = 1; cursor <= 1'000'000; ++cursor) CHECK(paging.Take(1000, cursor).ok());
  CHECK(paging.Take(1000, 0).ok());
  CHECK(paging.at_end());
}

TEST_CASE("small pages among large ones, of large rows, are no reason to leave") {
  Paging paging("rules_list");
  for (uint64_t cursor = 1; cursor < 5000; ++cursor) {
    CHECK(paging.Take(cursor % 2 == 0 ? 100 : 1, cursor).ok());
  }
}

}  // namespace
}  // namespace nowcalls::admin
