// Status and Result<T>: the outcome of every fallible nowcalls operation.
//
// A code tells the caller what it may do next; the message tells a person what is wrong and what to
// do.
//
// Thread: any; plain values.
#ifndef NOWCALLS_STATUS_H_
#define NOWCALLS_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "nowcalls/export.h"

namespace nowcalls {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument,     // The request or file is wrong; repeating it cannot help.
  kNotFound,            // What was named does not exist.
  kAlreadyExists,       // Something else holds the name, the lock or the id.
  kResourceExhausted,   // A limit is reached; the message names it.
  kFailedPrecondition,  // Not now: the state must change first.
  kUnavailable,         // Surely not applied; the caller may try again.
  kOutcomeUnknown,      // Perhaps applied; the caller must treat it as either.
  kCorruption,          // Stored bytes are not what was written.
  kIoError,             // The operating system or disk refused.
  kPermissionDenied,    // The caller may not; the message says what it lacks.
};

// In lower case with underscores: "invalid_argument".
std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string m) {
    return {StatusCode::kInvalidArgument, std::move(m)};
  }
  static Status NotFound(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
  static Status AlreadyExists(std::string m) { return {StatusCode::kAlreadyExists, std::move(m)}; }
  static Status ResourceExhausted(std::string m) {
    return {StatusCode::kResourceExhausted, std::move(m)};
  }
  static Status FailedPrecondition(std::string m) {
    return {StatusCode::kFailedPrecondition, std::move(m)};
  }
  static Status Unavailable(std::string m) { return {StatusCode::kUnavailable, std::move(m)}; }
  static Status OutcomeUnknown(std::string m) {
    return {StatusCode::kOutcomeUnknown, std::move(m)};
  }
  static Status Corruption(std::string m) { return {StatusCode::kCorruption, std::move(m)}; }
  static Status IoError(std::string m) { return {StatusCode::kIoError, std::move(m)}; }
  static Status PermissionDenied(std::string m) {
    return {StatusCode::kPermissionDenied, std::move(m)};
  }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "ok", or "corruption: sessions: value of 3 bytes is too short".
  std::string ToString() const {
    if (ok()) return "ok";
    return std::string(StatusCodeName(code_)) + ": " + message_;
  }

  // Puts `context` and ": " before the message; Ok stays Ok.
  Status WithContext(std::string_view context) const {
    if (ok()) return *this;
    return {code_, std::string(context) + ": " + message_};
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// REQUIRES of value(): ok(). Otherwise it ends the process, in release builds too.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) Fail("a Result was built from an Ok status without a value");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & {
    RequireValue();
    return *value_;
  }
  const T& value() const& {
    RequireValue();
    return *value_;
  }
  T&& value() && {
    RequireValue();
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  [[noreturn]] static void Fail(const char* what) {
    std::fprintf(stderr, "nowcalls: fatal: %s\n", what);
    std::abort();
  }
  void RequireValue() const {
    if (!value_.has_value()) Fail(status_.ToString().c_str());
  }

  std::optional<T> value_;
  Status status_;
};

inline std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "ok";
    case StatusCode::kInvalidArgument: return "invalid_argument";
    case StatusCode::kNotFound: return "not_found";
    case StatusCode::kAlreadyExists: return "already_exists";
    case StatusCode::kResourceExhausted: return "resource_exhausted";
    case StatusCode::kFailedPrecondition: return "failed_precondition";
    case StatusCode::kPermissionDenied: return "permission_denied";
    case StatusCode::kUnavailable: return "unavailable";
    case StatusCode::kOutcomeUnknown: return "outcome_unknown";
    case StatusCode::kCorruption: return "corruption";
    case StatusCode::kIoError: return "io_error";
  }
  return "unknown";
}

}  // namespace nowcalls

#define NOWCALLS_RETURN_IF_ERROR(expr)                 \
  do {                                                 \
    ::nowcalls::Status nowcalls_status = (expr);       \
    if (!nowcalls_status.ok()) return nowcalls_status; \
  } while (false)

#endif  // NOWCALLS_STATUS_H_
