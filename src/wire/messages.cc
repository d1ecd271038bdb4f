#include "wire/messages.h"

#include <utility>

#include "base/limits.h"
#include "wire/format.h"
#include "wire/reader.h"

namespace nowcalls::wire {
namespace {

bool Malformed(std::string message, RequestError* error) {
  error->code = ErrorCode::kMalformed;
  error->message = std::move(message);
  return false;
}

std::string MustBe(std::string_view what, std::string_view wanted, const Reader& reader) {
  return std::string(what) + " must be " + std::string(wanted) + ", got " +
         std::string(KindName(reader.Peek()));
}

// The kind and the range of a wrong msgid have errors of their own; both close the connection.
bool ReadMsgid(Reader* reader, Envelope* envelope, RequestError* error) {
  uint64_t msgid = 0;
  const Reader::Outcome outcome = reader->ReadUint(&msgid);
  if (outcome == Reader::Outcome::kWrongKind) {
    return Malformed(MustBe("msgid", "an integer", *reader), error);
  }
  if (outcome != Reader::Outcome::kOk || msgid > UINT32_MAX) {
    return Malformed("msgid must be 0..4294967295", error);
  }
  envelope->msgid = static_cast<uint32_t>(msgid);
  return true;
}

// The head of the message up to its method. The arity depends on the type, and is judged last.
bool ReadHead(Reader* reader, Envelope* envelope, RequestError* error) {
  uint32_t elements = 0;
  if (reader->ReadArray(&elements) != Reader::Outcome::kOk) {
    return Malformed(MustBe("message", "an array", *reader), error);
  }
  int64_t type = -1;
  if (reader->ReadInt(&type) != Reader::Outcome::kOk ||
      (type != kRequestType && type != kNotificationType)) {
    return Malformed("message type must be 0 (request) or 2 (notification)", error);
  }
  envelope->notification = type == kNotificationType;
  if (!envelope->notification && !ReadMsgid(reader, envelope, error)) return false;
  const uint32_t wanted = envelope->notification ? 3 : 4;
  if (elements == wanted) return true;
  return Malformed((envelope->notification ? "a notification has " : "a request has ") +
                       std::to_string(wanted) + " elements, got " + std::to_string(elements),
                   error);
}

}  // namespace

// For bytes that were refused: an array, type 0 and a msgid are enough to answer.
std::optional<uint32_t> FindMsgid(std::string_view message) {
  Reader reader(message);
  uint32_t elements = 0;
  int64_t type = -1;
  Envelope envelope;
  RequestError ignored;
  if (reader.ReadArray(&elements) != Reader::Outcome::kOk || elements < 2 ||
      reader.ReadInt(&type) != Reader::Outcome::kOk || type != kRequestType ||
      !ReadMsgid(&reader, &envelope, &ignored)) {
    return std::nullopt;
  }
  return envelope.msgid;
}

// For prefetching: a wrong answer costs nothing but time, so nothing is reported.
Subject SubjectAhead(std::string_view bytes) {
  using Outcome = Reader::Outcome;
  Reader reader(bytes);
  uint32_t elements = 0;
  int64_t type = -1;
  uint64_t msgid = 0;
  std::string_view method;
  Subject subject;
  const bool request =
      reader.ReadArray(&elements) == Outcome::kOk && reader.ReadInt(&type) == Outcome::kOk &&
      type == kRequestType && reader.ReadUint(&msgid) == Outcome::kOk &&
      reader.ReadString(&method) == Outcome::kOk && reader.ReadArray(&elements) == Outcome::kOk;
  if (!request || elements == 0) return {};
  if (method == MethodName(Method::kAcquire) || method == MethodName(Method::kRequest) ||
      method == MethodName(Method::kRequestParam)) {
    if (reader.ReadInt(&subject.flow) != Outcome::kOk) return {};
  } else if (method == MethodName(Method::kRelease)) {
    if (reader.ReadUint(&subject.token) != Outcome::kOk) return {};
  }
  return subject;
}

std::string_view MethodName(Method method) {
  for (const auto& [known, name] : kMethodNames) {
    if (known == method) return name;
  }
  return "unknown";
}

Method MethodFromName(std::string_view name) {
  for (const auto& [method, known] : kMethodNames) {
    if (known == name) return method;
  }
  return Method::kUnknown;
}

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMalformed: return "MALFORMED";
    case ErrorCode::kUnknownMethod: return "UNKNOWN_METHOD";
    case ErrorCode::kBadParams: return "BAD_PARAMS";
    case ErrorCode::kHelloState: return "HELLO_STATE";
    case ErrorCode::kOverloaded: return "OVERLOADED";
    case ErrorCode::kUnsupported: return "UNSUPPORTED";
    case ErrorCode::kConflict: return "CONFLICT";
    case ErrorCode::kInternal: return "INTERNAL";
    case ErrorCode::kPermission: return "PERMISSION";
  }
  return "UNKNOWN";
}

// Parameters stay encoded: the method's own decoder reads them. The splitter has checked that the
// message is whole and ends with them.
bool DecodeEnvelope(std::string_view message, Envelope* envelope, RequestError* error) {
  *envelope = Envelope{};
  Reader reader(message);
  if (!ReadHead(&reader, envelope, error)) return false;
  std::string_view name;
  const Reader::Outcome outcome = reader.ReadString(&name);
  if (outcome == Reader::Outcome::kCutOff) return Malformed("method is cut off", error);
  if (outcome != Reader::Outcome::kOk) return Malformed(MustBe("method", "a str", reader), error);
  // Errors and logs quote the name, so its length is bounded.
  if (name.size() > kStringBytesMax) {
    return Malformed("method of " + std::to_string(name.size()) + " bytes exceeds " +
                         std::to_string(kStringBytesMax),
                     error);
  }
  // An unknown method is not malformed: the connection goes on after its error.
  if (reader.Peek() != Kind::kArray) return Malformed(MustBe("params", "an array", reader), error);
  envelope->method = MethodFromName(name);
  envelope->method_name = name;
  envelope->params = reader.rest();
  return true;
}

}  // namespace nowcalls::wire
