#include "wire/client_messages.h"

#include <optional>

#include "base/limits.h"
#include "base/text.h"
#include "wire/field_reader.h"
#include "wire/packing.h"

namespace nowcalls::wire {
namespace {

// nil asks for the server's default.
void PackPage(const PageParams& page, Packer* packer) {
  if (page.limit == 0) {
    packer->pack_nil();
  } else {
    packer->pack_uint32(page.limit);
  }
  PackCursor(page.cursor, packer);
}

bool ReadStatus(FieldReader* fields, TokenStatus* status) {
  int64_t number = 0;
  if (!fields->Required("status", &number)) return false;
  *status = static_cast<TokenStatus>(number);
  const bool known =
      number >= INT8_MIN && number <= INT8_MAX && TokenStatusName(*status) != "UNKNOWN";
  return known || fields->Fail("status", std::to_string(number) + " is not known");
}

RefusedBy RefusedByFromName(std::string_view name) {
  for (int number = 1; number < kRefusedByCount; ++number) {
    const auto limit = static_cast<RefusedBy>(number);
    if (name == RefusedByName(limit)) return limit;
  }
  return RefusedBy::kOther;
}

// The code stays what the server said if this client knows it; otherwise the message keeps its
// name.
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
  return true;
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

}  // namespace

void EncodeHelloRequest(uint32_t msgid, std::string_view name_space,
                        std::optional<std::string_view> client_id, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kHello, 3, &packer);
  packer.pack_int64(kProtocolVersion);
  PackString(name_space, &packer);
  if (client_id) {
    PackString(*client_id, &packer);
  } else {
    packer.pack_nil();
  }
}

void EncodePlainRequest(uint32_t msgid, Method method, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, method, 0, &packer);
}

void EncodeAcquireRequest(uint32_t msgid, const AcquireParams& params, OutputBuffer* out) {
  Packer packer(*out);
  const int options = (params.prioritized ? 1 : 0) + (params.wait_ms.has_value() ? 1 : 0) +
                      (params.request_id != 0 ? 1 : 0);
  BeginRequest(msgid, Method::kAcquire, options > 0 ? 3 : 2, &packer);
  packer.pack_int64(params.flow_id);
  packer.pack_int64(params.count);
  if (options == 0) return;
  packer.pack_map(static_cast<uint32_t>(options));
  if (params.prioritized) {
    PackString("prioritized", &packer);
    packer.pack_true();
  }
  if (params.wait_ms.has_value()) {
    PackString("wait_ms", &packer);
    packer.pack_uint64(*params.wait_ms);
  }
  if (params.request_id != 0) {
    PackString("request_id", &packer);
    packer.pack_uint64(params.request_id);
  }
}

void EncodeCancelRequest(uint32_t msgid, uint64_t request_id, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kCancel, 1, &packer);
  packer.pack_uint64(request_id);
}

void EncodeTokenRequest(uint32_t msgid, Method method, uint64_t token_id, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, method, 1, &packer);
  packer.pack_uint64(token_id);
}

void EncodeReclaimRequest(uint32_t msgid, const ReclaimParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kReclaim, 2, &packer);
  packer.pack_uint64(params.token_id);
  PackString(params.reason, &packer);
}

void EncodeFlowRequest(uint32_t msgid, int64_t flow_id, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kFlow, 1, &packer);
  packer.pack_int64(flow_id);
}

void EncodePageRequest(uint32_t msgid, Method method, const PageParams& page, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, method, 2, &packer);
  PackPage(page, &packer);
}

void EncodeRulesListRequest(uint32_t msgid, const RulesListParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kRulesList, 3, &packer);
  if (params.name_space) {
    PackString(*params.name_space, &packer);
  } else {
    packer.pack_nil();
  }
  PackPage(params.page, &packer);
}

void EncodeTokensRequest(uint32_t msgid, const TokensParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kTokens, 3, &packer);
  const bool by_age = params.min_age_ms != 0;
  packer.pack_map((params.flow_id ? 1U : 0U) + (params.client_id ? 1U : 0U) + (by_age ? 1U : 0U));
  if (params.flow_id) {
    PackString("flow_id", &packer);
    packer.pack_int64(*params.flow_id);
  }
  if (params.client_id) {
    PackString("client_id", &packer);
    PackString(*params.client_id, &packer);
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

Result<HelloReply> DecodeHelloReply(std::string_view result) {
  return DecodeArray<HelloReply>(
      "hello answer", result, [](FieldReader* fields, HelloReply* reply) {
        return fields->Required("server_version", &reply->server_version) &&
               fields->Required("session", &reply->session) &&
               fields->Required("sessions_online", &reply->sessions_online) &&
               fields->Required("resumed_tokens", &reply->resumed_tokens);
      });
}

Result<AcquireReply> DecodeAcquireReply(std::string_view result) {
  return DecodeArray<AcquireReply>("acquire answer", result,
                                   [](FieldReader* fields, AcquireReply* reply) {
                                     std::optional<std::string_view> refused_by;
                                     if (!ReadStatus(fields, &reply->status) ||
                                         !fields->Required("token_id", &reply->token_id) ||
                                         !fields->Required("fence", &reply->fence) ||
                                         !fields->Required("now_calls", &reply->now_calls) ||
                                         !fields->Required("level", &reply->level) ||
                                         !fields->Required("hold_ms", &reply->hold_ms) ||
                                         !fields->Optional("refused_by", &refused_by)) {
                                       return false;
                                     }
                                     if (refused_by)
                                       reply->refused_by = RefusedByFromName(*refused_by);
                                     return true;
                                   });
}

Result<TokenStatus> DecodeStatusReply(std::string_view result) {
  return DecodeArray<TokenStatus>("status answer", result, ReadStatus);
}

Result<KeepReply> DecodeKeepReply(std::string_view result) {
  return DecodeArray<KeepReply>("keep answer", result, [](FieldReader* fields, KeepReply* reply) {
    return ReadStatus(fields, &reply->status) && fields->Required("hold_ms", &reply->hold_ms);
  });
}

Result<uint64_t> DecodeUintReply(std::string_view result) {
  return DecodeArray<uint64_t>("answer", result, [](FieldReader* fields, uint64_t* value) {
    return fields->Required("number", value);
  });
}

}  // namespace nowcalls::wire
