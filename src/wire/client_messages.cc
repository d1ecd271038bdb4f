#include "wire/client_messages.h"

#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/shown_text.h"
#include "base/text.h"
#include "wire/field_reader.h"
#include "wire/flow_field.h"
#include "wire/format.h"
#include "wire/kind_field.h"
#include "wire/packing.h"
#include "wire/param_list.h"

namespace nowcalls::wire {
namespace {

// nil asks for the server's default.
void PackLimit(uint32_t limit, Packer* packer) {
  if (limit == 0) {
    packer->pack_nil();
  } else {
    packer->pack_uint32(limit);
  }
}

void PackPage(const PageParams& page, Packer* packer) {
  PackLimit(page.limit, packer);
  PackCursor(page.cursor, packer);
}

// A status decides what the caller may do, so an unknown one is an error. The range is checked,
// too: the cast would cut a wide number to a known status.
bool ReadStatus(FieldReader* fields, TokenStatus* status) {
  int64_t number = 0;
  if (!fields->Required("status", &number)) return false;
  *status = static_cast<TokenStatus>(number);
  const bool known =
      number >= INT8_MIN && number <= INT8_MAX && TokenStatusName(*status) != "UNKNOWN";
  return known || fields->Fail("status", std::to_string(number) + " is not known");
}

// A code that this client does not know becomes kInternal, and the message keeps its name.
bool ReadError(FieldReader* fields, RequestError* error) {
  int64_t number = 0;
  std::string_view name;
  if (!fields->Required("code", &number) || !fields->Required("name", &name) ||
      !fields->Required("message", &error->message)) {
    return false;
  }
  error->code = static_cast<ErrorCode>(number);
  if (number < 1 || number > INT8_MAX || ErrorCodeName(error->code) == "UNKNOWN") {
    error->code = ErrorCode::kInternal;
    error->message = std::string(name) + ": " + error->message;
  }
  constexpr size_t kShownBytesMax = 4096;  // A person reads it.
  error->message = ShownText(Shortened(error->message, kShownBytesMax));
  return true;
}

// Requests that are sent by the million are written by hand, the others by msgpack-c. Integers take
// the shortest form in both, so the bytes are the same.
constexpr size_t kUintBytesMax = 9;

// A method's name and the head of its parameters, in octal: a letter would continue a \x.
constexpr char kAcquireOfTwo[] = "\247acquire\222";
constexpr char kAcquireOfThree[] = "\247acquire\223";
constexpr char kRequestOfTwo[] = "\247request\222";
constexpr char kReleaseOfOne[] = "\247release\221";
constexpr size_t kHeadBytesMax = 2 + kUintBytesMax + sizeof(kAcquireOfTwo);
// {"request_id": and the id follows.
constexpr char kRequestIdOption[] = "\201\252request_id";

char* PutByte(uint8_t byte, char* out) { return StoreBigEndian(out, byte); }

char* PutUint(uint64_t value, char* out) {
  if (value <= kPositiveFixintLast) return PutByte(static_cast<uint8_t>(value), out);
  if (value <= UINT8_MAX) {
    return PutByte(static_cast<uint8_t>(value), PutByte(kUint8, out));
  }
  if (value <= UINT16_MAX) {
    return StoreBigEndian(PutByte(kUint16, out), static_cast<uint16_t>(value));
  }
  if (value <= UINT32_MAX) {
    return StoreBigEndian(PutByte(kUint32, out), static_cast<uint32_t>(value));
  }
  return StoreBigEndian(PutByte(kUint64, out), value);
}

// The bytes of a literal, without its closing zero.
template <size_t kSize>
char* PutBytes(const char (&bytes)[kSize], char* out) {
  std::memcpy(out, bytes, kSize - 1);
  return out + kSize - 1;
}

// [0, msgid, NAME, [ and the parameters follow.
template <size_t kSize>
char* PutHead(uint32_t msgid, const char (&name_and_array)[kSize], char* out) {
  return PutBytes(name_and_array,
                  PutUint(msgid, PutUint(kRequestType, PutByte(kRequestByte, out))));
}

template <typename Reply, typename ReadRest>
Result<Reply> DecodeArray(std::string_view subject, std::string_view result, ReadRest&& read) {
  RequestError error;
  FieldReader fields(subject, result, kReplyBytesMax, &error);
  Reply reply{};
  if (!fields.OpenArray() || !read(&fields, &reply) || !fields.Close()) {
    return Status::Corruption(error.message);
  }
  return reply;
}

// Options that AcquireParams and AcquireAllParams share. The map's head has its size, so options
// are counted before the first is packed; both functions must name the same ones.
template <typename AnyParams>
uint32_t CountOptions(const AnyParams& params) {
  return (params.prioritized ? 1U : 0U) + (params.wait_ms.has_value() ? 1U : 0U) +
         (params.request_id != 0 ? 1U : 0U) + (params.hold_ms != 0 ? 1U : 0U);
}

template <typename AnyParams>
void PackOptions(const AnyParams& params, Packer* packer) {
  if (params.prioritized) {
    PackString("prioritized", packer);
    packer->pack_true();
  }
  if (params.wait_ms.has_value()) {
    PackString("wait_ms", packer);
    packer->pack_uint64(*params.wait_ms);
  }
  if (params.request_id != 0) {
    PackString("request_id", packer);
    packer->pack_uint64(params.request_id);
  }
  if (params.hold_ms != 0) {
    PackString("hold_ms", packer);
    packer->pack_uint64(params.hold_ms);
  }
}

// Absent from older servers, and unless hello asked.
bool ReadTerms(FieldReader* fields, std::optional<Terms>* terms) {
  if (fields->TakeMissing()) return true;
  return fields->NestedArray("terms", kElementsMax, [&] {
    Terms& read = terms->emplace();
    return fields->Required("strategy", &read.strategy) &&
           fields->Required("resource_timeout_ms", &read.resource_timeout_ms) &&
           fields->Required("client_offline_ms", &read.client_offline_ms);
  });
}

bool ReadToken(FieldReader* fields, AcquireAllReply::Token* token) {
  return fields->NestedArray("token", kElementsMax, [&] {
    return fields->Required("token_id", &token->token_id) &&
           fields->Required("fence", &token->fence) &&
           fields->Required("hold_ms", &token->hold_ms) && ReadTerms(fields, &token->terms);
  });
}

bool ReadAcquireReply(FieldReader* fields, AcquireReply* reply) {
  std::optional<std::string_view> refused_by;
  if (!ReadStatus(fields, &reply->status) || !fields->Required("token_id", &reply->token_id) ||
      !fields->Required("fence", &reply->fence) ||
      !fields->Required("now_calls", &reply->now_calls) ||
      !fields->Required("level", &reply->level) || !fields->Required("hold_ms", &reply->hold_ms) ||
      !fields->Optional("refused_by", &refused_by)) {
    return false;
  }
  if (refused_by) reply->refused_by = RefusedByFromName(*refused_by);
  // The caller knows the value that it asked for.
  const bool has_value = fields->TakeMissing() || fields->Skip("value");
  return has_value && ReadTerms(fields, &reply->terms);
}

// The value behind the level is skipped with the elements left (Close).
bool ReadAcquireAllReply(FieldReader* fields, AcquireAllReply* reply) {
  const auto token = [&] { return ReadToken(fields, &reply->tokens.emplace_back()); };
  std::optional<std::string_view> refused_by;
  if (!ReadStatus(fields, &reply->status) || !fields->ForEachElement("tokens", token) ||
      !fields->Optional("refused_by", &refused_by) ||
      !fields->Required("flow_id", &reply->flow_id) ||
      !fields->Required("now_calls", &reply->now_calls) ||
      !fields->Required("level", &reply->level)) {
    return false;
  }
  if (refused_by) reply->refused_by = RefusedByFromName(*refused_by);
  return true;
}

template <typename AnyParams>
bool HasFlow(const AnyParams& params) {
  return params.flow_id.has_value() || !params.flow_name.empty();
}

// Keys of a filter that TokensParams and WaitersParams share; counted first, as above.
template <typename AnyParams>
uint32_t PairsOfWhose(const AnyParams& params) {
  return (HasFlow(params) ? 1 : 0) + (params.kind ? 1 : 0) + (params.client_id ? 1 : 0) +
         (params.instance ? 1 : 0);
}

template <typename AnyParams>
void PackWhose(const AnyParams& params, Packer* packer) {
  if (HasFlow(params)) {
    PackString("flow_id", packer);
    PackFlow(params.flow_id.value_or(0), params.flow_name, packer);
  }
  if (params.kind) {
    PackString("kind", packer);
    PackKind(*params.kind, packer);
  }
  if (params.client_id) {
    PackString("client_id", packer);
    PackString(*params.client_id, packer);
  }
  if (params.instance) {
    PackString("instance", packer);
    packer->pack_uint64(*params.instance);
  }
}

}  // namespace

void EncodeHelloRequest(uint32_t msgid, const HelloParams& params, OutputBuffer* out) {
  // Options at their default are not sent, and no map without options: older servers refuse keys
  // and parameters that they do not know.
  const uint32_t options = (params.lost ? 1U : 0U) + (params.exclusive ? 1U : 0U) +
                           (params.instance != 0 ? 1U : 0U) + (params.terms ? 1U : 0U);
  Packer packer(*out);
  BeginRequest(msgid, Method::kHello, options > 0 ? 4 : 3, &packer);
  packer.pack_int64(params.protocol);
  PackString(params.name_space, &packer);
  if (params.client_id) {
    PackString(*params.client_id, &packer);
  } else {
    packer.pack_nil();
  }
  if (options == 0) return;
  packer.pack_map(options);
  if (params.lost) {
    PackString("lost", &packer);
    packer.pack_true();
  }
  if (params.exclusive) {
    PackString("exclusive", &packer);
    packer.pack_true();
  }
  if (params.instance != 0) {
    PackString("instance", &packer);
    packer.pack_uint64(params.instance);
  }
  if (params.terms) {
    PackString("terms", &packer);
    packer.pack_true();
  }
}

void EncodeIdentifyRequest(uint32_t msgid, std::string_view secret, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kIdentify, secret.empty() ? 0 : 1, &packer);
  if (!secret.empty()) PackString(secret, &packer);
}

void EncodePlainRequest(uint32_t msgid, Method method, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, method, 0, &packer);
}

void EncodeAcquireRequest(uint32_t msgid, const AcquireParams& params, OutputBuffer* out) {
  // By hand: without options, or with a request id alone. PutUint has no sign, so negative values,
  // which the server answers BAD_REQUEST, go the long way.
  const bool has_id = params.request_id != 0;
  const bool plain = params.flow_name.empty() && !params.prioritized && !params.wait_ms &&
                     !params.param && params.hold_ms == 0;
  if (plain && params.flow_id >= 0 && params.count >= 0) {
    char request[kHeadBytesMax + sizeof(kRequestIdOption) + 3 * kUintBytesMax];
    char* end =
        has_id ? PutHead(msgid, kAcquireOfThree, request) : PutHead(msgid, kAcquireOfTwo, request);
    end = PutUint(static_cast<uint64_t>(params.flow_id), end);
    end = PutUint(static_cast<uint64_t>(params.count), end);
    if (has_id) end = PutUint(params.request_id, PutBytes(kRequestIdOption, end));
    return out->write(request, static_cast<size_t>(end - request));
  }
  const uint32_t options = CountOptions(params) + (params.param.has_value() ? 1 : 0);
  Packer packer(*out);
  BeginRequest(msgid, Method::kAcquire, options > 0 ? 3 : 2, &packer);
  PackFlow(params.flow_id, params.flow_name, &packer);
  packer.pack_int64(params.count);
  if (options == 0) return;
  packer.pack_map(options);
  PackOptions(params, &packer);
  if (params.param.has_value()) {
    PackString("param", &packer);
    PackParam(*params.param, &packer);
  }
}

void EncodeAcquireAllRequest(uint32_t msgid, const AcquireAllParams& params, OutputBuffer* out) {
  const uint32_t options = CountOptions(params);
  Packer packer(*out);
  BeginRequest(msgid, Method::kAcquireAll, options > 0 ? 2 : 1, &packer);
  packer.pack_array(static_cast<uint32_t>(params.items.size()));
  for (const AcquireAllParams::Item& item : params.items) {
    // Servers of before rates refuse a fourth element, so tokens have none.
    packer.pack_array(item.rate ? 4 : item.param.has_value() ? 3 : 2);
    PackFlow(item.flow_id, item.flow_name, &packer);
    packer.pack_int64(item.count);
    if (item.param.has_value()) {
      PackParam(*item.param, &packer);
    } else if (item.rate) {
      packer.pack_nil();
    }
    if (item.rate) packer.pack_uint32(1);
  }
  if (options == 0) return;
  packer.pack_map(options);
  PackOptions(params, &packer);
}

void EncodeRateRequest(uint32_t msgid, const RateParams& params, OutputBuffer* out) {
  if (params.flow_name.empty() && !params.prioritized && params.flow_id >= 0 && params.count >= 0) {
    char request[kHeadBytesMax + 2 * kUintBytesMax];
    char* end = PutHead(msgid, kRequestOfTwo, request);
    end = PutUint(static_cast<uint64_t>(params.flow_id), end);
    end = PutUint(static_cast<uint64_t>(params.count), end);
    return out->write(request, static_cast<size_t>(end - request));
  }
  Packer packer(*out);
  BeginRequest(msgid, Method::kRequest, params.prioritized ? 3 : 2, &packer);
  PackFlow(params.flow_id, params.flow_name, &packer);
  packer.pack_int64(params.count);
  if (params.prioritized) packer.pack_true();
}

void EncodeValueRateRequest(uint32_t msgid, const ValueRateParams& params,
                            std::span<const Param> values, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kRequestParam, 3, &packer);
  PackFlow(params.flow_id, params.flow_name, &packer);
  packer.pack_int64(params.count);
  packer.pack_array(static_cast<uint32_t>(values.size()));
  for (const Param& value : values) PackParam(value, &packer);
}

void EncodeCancelRequest(uint32_t msgid, uint64_t request_id, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kCancel, 1, &packer);
  packer.pack_uint64(request_id);
}

void EncodeTokenRequest(uint32_t msgid, Method method, uint64_t token_id, OutputBuffer* out) {
  // Of these only releases are frequent enough to be written by hand.
  if (method == Method::kRelease) {
    char request[kHeadBytesMax + kUintBytesMax];
    char* end = PutUint(token_id, PutHead(msgid, kReleaseOfOne, request));
    return out->write(request, static_cast<size_t>(end - request));
  }
  Packer packer(*out);
  BeginRequest(msgid, method, 1, &packer);
  packer.pack_uint64(token_id);
}

void EncodeReleaseRequest(uint32_t msgid, uint64_t token_id, CallOutcome outcome,
                          OutputBuffer* out) {
  // kOk says nothing, so that older servers take the message.
  if (outcome == CallOutcome::kOk) {
    return EncodeTokenRequest(msgid, Method::kRelease, token_id, out);
  }
  Packer packer(*out);
  BeginRequest(msgid, Method::kRelease, 2, &packer);
  packer.pack_uint64(token_id);
  packer.pack_map(1);
  PackString("outcome", &packer);
  PackString(CallOutcomeName(outcome), &packer);
}

void EncodeReclaimRequest(uint32_t msgid, const ReclaimParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kReclaim, 2, &packer);
  packer.pack_uint64(params.token_id);
  PackString(params.reason, &packer);
}

void EncodeFlowRequest(uint32_t msgid, const FlowParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kFlow, params.kind ? 2 : 1, &packer);
  PackFlow(params.flow_id, params.flow_name, &packer);
  if (params.kind) PackKind(*params.kind, &packer);
}

void EncodePageRequest(uint32_t msgid, Method method, const PageParams& page, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, method, 2, &packer);
  PackPage(page, &packer);
}

void EncodeParamsRequest(uint32_t msgid, const ValuesParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kParams, params.by_minute ? 3 : 2, &packer);
  PackFlow(params.flow_id, params.flow_name, &packer);
  PackLimit(params.limit, &packer);
  if (params.by_minute) PackString("minute", &packer);
}

void EncodeWaitersRequest(uint32_t msgid, const WaitersParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kWaiters, 2, &packer);
  // The filter is a map even when it is empty: the limit stands behind it.
  packer.pack_map(PairsOfWhose(params));
  PackWhose(params, &packer);
  PackLimit(params.limit, &packer);
}

void EncodeRulesListRequest(uint32_t msgid, const RulesListParams& params, OutputBuffer* out) {
  Packer packer(*out);
  const bool of_flow = HasFlow(params);  // Older servers refuse a fourth parameter.
  BeginRequest(msgid, Method::kRulesList, of_flow ? 4 : 3, &packer);
  if (params.name_space) {
    PackString(*params.name_space, &packer);
  } else {
    packer.pack_nil();
  }
  PackPage(params.page, &packer);
  if (of_flow) PackFlow(params.flow_id.value_or(0), params.flow_name, &packer);
}

void EncodeTokensRequest(uint32_t msgid, const TokensParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kTokens, 3, &packer);
  const bool by_age = params.min_age_ms != 0;
  packer.pack_map(PairsOfWhose(params) + (params.session ? 1 : 0) + (by_age ? 1 : 0));
  PackWhose(params, &packer);
  if (params.session) {
    PackString("session", &packer);
    packer.pack_uint64(*params.session);
  }
  if (by_age) {
    PackString("min_age_ms", &packer);
    packer.pack_int64(params.min_age_ms);
  }
  PackPage(params.page, &packer);
}

void EncodeRulesLoadRequest(uint32_t msgid, std::string_view name_space, std::string_view json,
                            OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kRulesLoad, 2, &packer);
  PackString(name_space, &packer);
  PackString(json, &packer);
}

Result<Response> DecodeResponse(std::string_view message) {
  // An error is an array of its own: the outer pass takes its bytes, a second one decodes them.
  std::optional<std::string_view> error;
  Result<Response> response =
      DecodeArray<Response>("response", message, [&error](FieldReader* fields, Response* out) {
        int64_t type = 0;
        if (!fields->Required("type", &type)) return false;
        if (type != kResponseType) return fields->Fail("type", "must be 1 (response)");
        return fields->Required("msgid", &out->msgid) &&
               (fields->TakeMissing() || fields->Raw("error", &error.emplace())) &&
               fields->Raw("result", &out->result);
      });
  if (!response.ok() || !error) return response;
  Result<RequestError> decoded = DecodeArray<RequestError>("error", *error, ReadError);
  if (!decoded.ok()) return decoded.status();
  response->error = *std::move(decoded);
  return response;
}

bool IsNotification(std::string_view message) {
  return !message.empty() && static_cast<uint8_t>(message.front()) == kNotificationByte;
}

Result<std::optional<LostNotice>> DecodeNotification(std::string_view message) {
  std::string method;
  std::string_view params;
  const Result<LostNotice> outer =
      DecodeArray<LostNotice>("notification", message, [&](FieldReader* fields, LostNotice*) {
        int64_t type = 0;
        if (!fields->Required("type", &type)) return false;
        if (type != kNotificationType) return fields->Fail("type", "must be 2 (notification)");
        return fields->Required("method", &method) && fields->Raw("params", &params);
      });
  if (!outer.ok()) return outer.status();
  // Notifications of later servers are ignored. Elements that they add to this one, too.
  if (method != "lost") return std::optional<LostNotice>();
  Result<LostNotice> notice =
      DecodeArray<LostNotice>("lost", params, [](FieldReader* fields, LostNotice* lost) {
        return fields->Required("token_id", &lost->token_id) &&
               fields->Required("flow_id", &lost->flow_id) &&
               fields->Required("reason", &lost->reason);
      });
  if (!notice.ok()) return notice.status();
  // The word comes from the wire and goes to logs and terminals.
  notice->reason = ShownText(Shortened(notice->reason));
  return std::optional<LostNotice>(*std::move(notice));
}

// Replies: missing elements are errors. Elements that a later server adds are skipped by Close in
// DecodeArray.
Result<HelloReply> DecodeHelloReply(std::string_view result) {
  return DecodeArray<HelloReply>(
      "hello answer", result, [](FieldReader* fields, HelloReply* reply) {
        return fields->Required("server_version", &reply->server_version) &&
               fields->Required("session", &reply->session) &&
               fields->Required("sessions_online", &reply->sessions_online) &&
               fields->Required("resumed_tokens", &reply->resumed_tokens);
      });
}

Result<IdentifyReply> DecodeIdentifyReply(std::string_view result) {
  Result<IdentifyReply> decoded = DecodeArray<IdentifyReply>(
      "identify answer", result, [](FieldReader* fields, IdentifyReply* reply) {
        if (!fields->Required("name", &reply->name) || !fields->Required("role", &reply->role) ||
            !fields->Required("proof", &reply->proof)) {
          return false;
        }
        if (fields->TakeMissing()) return true;
        reply->namespaces.emplace();
        return fields->ForEachElement("namespaces", [&] {
          return fields->Required("namespace", &reply->namespaces->emplace_back());
        });
      });
  if (!decoded.ok()) return decoded;
  // A person reads them at a terminal.
  for (std::string* text : {&decoded->name, &decoded->role, &decoded->proof}) {
    *text = ShownText(Shortened(*text));
  }
  return decoded;
}

Result<AcquireReply> DecodeAcquireReply(std::string_view result) {
  return DecodeArray<AcquireReply>("acquire answer", result, ReadAcquireReply);
}

Result<AcquireAllReply> DecodeAcquireAllReply(std::string_view result) {
  return DecodeArray<AcquireAllReply>("acquire_all answer", result, ReadAcquireAllReply);
}

Result<RateReply> DecodeRateReply(std::string_view result) {
  return DecodeArray<RateReply>("rate answer", result, [](FieldReader* fields, RateReply* reply) {
    std::optional<std::string_view> refused_by;
    if (!ReadStatus(fields, &reply->status) || !fields->Required("remaining", &reply->remaining) ||
        !fields->Required("wait_ms", &reply->wait_ms) ||
        !fields->Optional("refused_by", &refused_by)) {
      return false;
    }
    if (refused_by) reply->refused_by = RefusedByFromName(*refused_by);
    return true;
  });
}

Result<TokenStatus> DecodeStatusReply(std::string_view result) {
  return DecodeArray<TokenStatus>("status answer", result, ReadStatus);
}

Result<KeepReply> DecodeKeepReply(std::string_view result) {
  return DecodeArray<KeepReply>("keep answer", result, [](FieldReader* fields, KeepReply* reply) {
    return ReadStatus(fields, &reply->status) && fields->Required("hold_ms", &reply->hold_ms) &&
           ReadTerms(fields, &reply->terms);
  });
}

Result<uint64_t> DecodeUintReply(std::string_view result) {
  return DecodeArray<uint64_t>("answer", result, [](FieldReader* fields, uint64_t* value) {
    return fields->Required("number", value);
  });
}

}  // namespace nowcalls::wire
