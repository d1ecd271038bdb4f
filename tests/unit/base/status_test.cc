#include "nowcalls/status.h"

#include <doctest/doctest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "nowcalls/types.h"

namespace nowcalls {
namespace {

Status Check(bool good) {
  NOWCALLS_RETURN_IF_ERROR(good ? Status::Ok() : Status::NotFound("no such rule"));
  return Status::InvalidArgument("came to the end");
}

TEST_CASE("a default status is ok and says so") {
  const Status status;
  CHECK(status.ok());
  CHECK(status.code() == StatusCode::kOk);
  CHECK(status.ToString() == "ok");
  CHECK(status.WithContext("loading").ToString() == "ok");
}

TEST_CASE("a failed status names its code and keeps its message") {
  const Status status = Status::Corruption("sessions: value of 3 bytes is too short");
  CHECK_FALSE(status.ok());
  CHECK(status.ToString() == "corruption: sessions: value of 3 bytes is too short");
  const Status inner = status.WithContext("open");
  CHECK(inner.code() == StatusCode::kCorruption);
  CHECK(inner.message() == "open: sessions: value of 3 bytes is too short");
}

TEST_CASE("every constructor gives its own code and every code its own name") {
  const std::pair<Status, std::string_view> all[] = {
      {Status::InvalidArgument("m"), "invalid_argument"},
      {Status::NotFound("m"), "not_found"},
      {Status::AlreadyExists("m"), "already_exists"},
      {Status::ResourceExhausted("m"), "resource_exhausted"},
      {Status::FailedPrecondition("m"), "failed_precondition"},
      {Status::Unavailable("m"), "unavailable"},
      {Status::OutcomeUnknown("m"), "outcome_unknown"},
      {Status::Corruption("m"), "corruption"},
      {Status::IoError("m"), "io_error"},
  };
  for (const auto& [status, name] : all) {
    CHECK(StatusCodeName(status.code()) == name);
    CHECK(status.ToString() == std::string(name) + ": m");
  }
}

TEST_CASE("the return macro stops at the first failure only") {
  CHECK(Check(false).code() == StatusCode::kNotFound);
  CHECK(Check(true).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a result holds a value or the status that says why not") {
  Result<int> good = 7;
  REQUIRE(good.ok());
  CHECK(*good == 7);
  CHECK(good.status().ok());
  const Result<int> bad = Status::IoError("disk");
  CHECK_FALSE(bad.ok());
  CHECK(bad.status().code() == StatusCode::kIoError);
}

TEST_CASE("a result gives away a value that can only be moved") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  REQUIRE(result.ok());
  const std::unique_ptr<int> taken = *std::move(result);
  CHECK(*taken == 5);
}

TEST_CASE("token statuses and end reasons carry the numbers and words of the protocol") {
  CHECK(static_cast<int>(TokenStatus::kBadRequest) == -4);
  CHECK(static_cast<int>(TokenStatus::kAlreadyRelease) == 7);
  CHECK(TokenStatusName(TokenStatus::kNoRuleExists) == "NO_RULE_EXISTS");
  CHECK(TokenStatusName(static_cast<TokenStatus>(99)) == "UNKNOWN");
  CHECK(RefusedByName(RefusedBy::kNone).empty());
  CHECK(RefusedByName(RefusedBy::kTokenLimit) == "token_limit");
  CHECK(EndReasonName(EndReason::kReleasedLate) == "released_late");
  CHECK(FlowId{3} < FlowId{4});
}

}  // namespace
}  // namespace nowcalls
