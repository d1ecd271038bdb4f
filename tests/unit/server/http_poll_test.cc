#include "server/rules/http_poll.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace nowcalls::server {
namespace {

using Outcome = Fetched::Outcome;
using Lines = std::vector<std::string>;

constexpr int64_t kPollMs = 5'000;

TEST_CASE("a document with a tag is asked for with it, and 304 is no content") {
  HttpPoll poll("http://a/b", kPollMs);
  HttpRequest request = poll.Next(false);
  CHECK(request.url == "http://a/b");
  CHECK(request.headers.empty());
  CHECK(request.answer_ms_max == HttpPoll::kAnswerMsMax);
  Fetched fetched = poll.Take(HttpReply{.code = 200, .etag = "W/\"1\"", .body = "[]"});
  CHECK(fetched.outcome == Outcome::kRead);
  CHECK(fetched.text == "[]");
  CHECK(fetched.pause_ms == kPollMs);
  CHECK(poll.Next(false).headers == Lines{"If-None-Match: W/\"1\""});
  fetched = poll.Take(HttpReply{.code = 304});
  CHECK(fetched.outcome == Outcome::kUnchanged);
  CHECK(fetched.pause_ms == kPollMs);
  // The tag stays, also where 304 does not repeat it.
  CHECK(poll.Next(false).headers == Lines{"If-None-Match: W/\"1\""});
  poll.Take(HttpReply{.code = 200, .last_modified = "Sun, 01 Nov 2026 00:00:00 GMT"});
  CHECK(poll.Next(false).headers == Lines{"If-Modified-Since: Sun, 01 Nov 2026 00:00:00 GMT"});
  // Somebody asks.
  CHECK(poll.Next(true).headers.empty());
}

TEST_CASE("behind a failure the whole document is asked for") {
  const auto failed = [](Result<HttpReply> reply) {
    HttpPoll poll("http://a/b", kPollMs);
    poll.Next(false);
    poll.Take(HttpReply{.code = 200, .etag = "\"1\"", .consul_index = "7"});
    poll.Next(false);
    Fetched fetched = poll.Take(std::move(reply));
    CHECK(fetched.outcome == Outcome::kFailed);
    CHECK(fetched.pause_ms == kPollMs);
    CHECK(poll.Next(false).headers.empty());
    CHECK(poll.Next(false).url == "http://a/b");
    return fetched.problem;
  };
  CHECK(failed(Status::Unavailable("cannot be reached")) == "cannot be reached");
  CHECK(failed(HttpReply{.code = 404}) == "answers 404");
  CHECK(failed(HttpReply{.code = 403}) == "answers 403: see rules-header-file");
  CHECK(failed(HttpReply{.code = 301}) == "answers 301: name the address to which it redirects");
  CHECK(failed(HttpReply{.code = 204}) == "answers 204");
  CHECK(failed(HttpReply{.code = 503, .etag = "\"2\"", .body = "[]"}) == "answers 503");
}

TEST_CASE("304 to a request without a tag is a failure") {
  HttpPoll poll("http://a/b", kPollMs);
  poll.Next(false);
  CHECK(poll.Take(HttpReply{.code = 304}).outcome == Outcome::kFailed);
}

TEST_CASE("a tag that cannot be sent back is not") {
  HttpPoll poll("http://a/b", kPollMs);
  for (const std::string& tag : {std::string("\"a\nX: y\""), std::string(1'025, 'x')}) {
    poll.Next(false);
    CHECK(poll.Take(HttpReply{.code = 200, .etag = tag}).outcome == Outcome::kRead);
    CHECK(poll.Next(false).headers.empty());
  }
}

TEST_CASE("Consul is asked to wait for the index after the last one") {
  HttpPoll poll("http://a/v1/kv/b?raw", kPollMs);
  poll.Next(false);
  Fetched fetched = poll.Take(HttpReply{.code = 200, .consul_index = "12", .body = "[]"});
  CHECK(fetched.pause_ms == HttpPoll::kConsulPauseMs);
  const HttpRequest request = poll.Next(false);
  CHECK(request.url == "http://a/v1/kv/b?raw&index=12&wait=30s");
  CHECK(request.answer_ms_max > HttpPoll::kConsulWaitMs + HttpPoll::kConsulWaitMs / 16);
  poll.Take(HttpReply{.code = 200, .consul_index = "12"});
  CHECK(poll.Next(false).url == "http://a/v1/kv/b?raw&index=12&wait=30s");
  // Somebody asks, and must not wait.
  CHECK(poll.Next(true).url == "http://a/v1/kv/b?raw");
}

TEST_CASE("an index of Consul that goes back, or is none, begins anew") {
  for (const char* index : {"11", "0", "", "x", "-1", "12x", "99999999999999999999"}) {
    CAPTURE(index);
    HttpPoll poll("http://a/b", kPollMs);
    poll.Next(false);
    poll.Take(HttpReply{.code = 200, .consul_index = "12"});
    CHECK(poll.Next(false).url == "http://a/b?index=12&wait=30s");
    const Fetched fetched = poll.Take(HttpReply{.code = 200, .consul_index = index});
    CHECK(fetched.pause_ms == kPollMs);
    CHECK(poll.Next(false).url == "http://a/b");
  }
}

}  // namespace
}  // namespace nowcalls::server
