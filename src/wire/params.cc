#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "base/utf8.h"
#include "wire/field_reader.h"
#include "wire/flow_field.h"
#include "wire/json.h"
#include "wire/kind_field.h"
#include "wire/messages.h"
#include "wire/param_list.h"

namespace nowcalls::wire {
namespace {

// The parameters of one method, with the limits of a request.
class Params : public FieldReader {
 public:
  Params(Method method, std::string_view params, RequestError* error,
         size_t string_bytes_max = kStringBytesMax)
      : FieldReader(MethodName(method), params, string_bytes_max, error) {}
};

bool Checked(const Status& status, std::string_view name, FieldReader* fields) {
  return status.ok() || fields->Fail(name, status.message());
}

bool ReadNamespace(FieldReader* fields, std::string_view* name) {
  return fields->Required("namespace", name) && Checked(CheckNamespace(*name), "namespace", fields);
}

// A limit of 0 would make a page without rows and without progress, so it is refused.
bool ReadRows(FieldReader* fields, uint32_t* out) {
  uint64_t limit = kListRowsDefault;
  if (!fields->Optional("limit", &limit)) return false;
  if (limit == 0 || limit > kListRowsMax) {
    return fields->Fail(
        "limit", "must be 1.." + std::to_string(kListRowsMax) + ", got " + std::to_string(limit));
  }
  *out = static_cast<uint32_t>(limit);
  return true;
}

bool ReadPage(FieldReader* fields, PageParams* page) {
  return ReadRows(fields, &page->limit) && fields->Optional("cursor", &page->cursor);
}

// The value of a token goes into the ledger, whose texts hold no zero byte (ledger/param_codec.h);
// values of a request_param do not.
bool ReadHeldParam(std::string_view name, FieldReader* fields, ParamNumber* room,
                   std::optional<Param>* out) {
  if (fields->TakeMissing()) return true;
  Param param;
  if (!ReadParam(name, fields, room, &param)) return false;
  if (param.type == ParamType::kString && param.bytes.find('\0') != std::string_view::npos) {
    return fields->Fail(name, "must not hold a zero byte");
  }
  *out = param;
  return true;
}

bool ReadWait(std::string_view name, FieldReader* fields, std::optional<uint64_t>* wait_ms) {
  if (!fields->Optional(name, wait_ms)) return false;
  if (wait_ms->value_or(0) <= static_cast<uint64_t>(kWaitMsMax)) return true;
  return fields->Fail(
      name, "must be 0.." + std::to_string(kWaitMsMax) + ", got " + std::to_string(**wait_ms));
}

// 0 .. 2^63 - 1.
bool ReadUint63(std::string_view name, FieldReader* fields, uint64_t* value) {
  if (!fields->Optional(name, value)) return false;
  return *value <= static_cast<uint64_t>(INT64_MAX) ||
         fields->Fail(name, "must fit a signed 64-bit integer");
}

// Options that AcquireParams and AcquireAllParams share.
template <typename AnyParams>
bool ReadAcquireOption(std::string_view key, FieldReader* fields, AnyParams* out) {
  if (key == "prioritized") return fields->Optional(key, &out->prioritized);
  if (key == "wait_ms") return ReadWait(key, fields, &out->wait_ms);
  if (key == "request_id") return fields->Optional(key, &out->request_id);
  if (key == "hold_ms") return ReadUint63(key, fields, &out->hold_ms);
  return fields->FailUnknown(key);
}

// On the wire 0 or 1, not a bool (PROTOCOL.md).
bool ReadIsRate(FieldReader* fields, bool* rate) {
  uint64_t number = 0;
  if (!fields->Optional("rate", &number)) return false;
  *rate = number == 1;
  return number <= 1 || fields->Fail("rate", "must be 0 or 1, got " + std::to_string(number));
}

bool ReadItem(FieldReader* fields, AcquireAllParams::Item* item) {
  return fields->NestedArray("item", 4, [&] {
    return ReadFlow(fields, item) && fields->Required("count", &item->count) &&
           ReadHeldParam("param", fields, &item->number, &item->param) &&
           ReadIsRate(fields, &item->rate);
  });
}

// Params of numbers point into their item, so items must never move: room for all is reserved
// first. A list that is too long is read to its end, so that the error can tell its length.
bool ReadItems(FieldReader* fields, std::vector<AcquireAllParams::Item>* items) {
  if (fields->TakeMissing()) return fields->Fail("items", "is missing");
  items->clear();
  items->reserve(kAcquireAllMax);
  size_t size = 0;
  const auto item = [&] {
    return ++size > kAcquireAllMax ? fields->Skip("item")
                                   : ReadItem(fields, &items->emplace_back());
  };
  if (!fields->ForEachElement("items", item)) return false;
  if (size >= 1 && size <= kAcquireAllMax) return true;
  return fields->Fail(
      "items", "must be 1.." + std::to_string(kAcquireAllMax) + ", got " + std::to_string(size));
}

// A word that this server does not know is refused: a silent kOk would falsify the counters.
bool ReadOutcome(std::string_view name, FieldReader* fields, CallOutcome* outcome) {
  std::optional<std::string_view> word;
  if (!fields->Optional(name, &word)) return false;
  if (!word.has_value()) return true;
  for (int number = 0; number < kCallOutcomeCount; ++number) {
    *outcome = static_cast<CallOutcome>(number);
    if (*word == CallOutcomeName(*outcome)) return true;
  }
  return fields->Fail(name, "must be ok, failed or timeout, got " + Quoted(*word));
}

// A filter that the server does not know is refused: the rows would be others than those asked for.
bool ReadTokensFilter(std::string_view key, FieldReader* fields, TokensParams* out) {
  if (key == "flow_id") return ReadFlowFilter(fields, out);
  if (key == "client_id") return fields->Optional(key, &out->client_id);
  if (key == "instance") return fields->Optional(key, &out->instance);
  if (key == "session") return fields->Optional(key, &out->session);
  if (key == "kind") return ReadKind(key, fields, &out->kind);
  if (key != "min_age_ms") return fields->FailUnknown(key);
  if (!fields->Optional(key, &out->min_age_ms)) return false;
  return out->min_age_ms >= 0 || fields->Fail(key, "must not be negative");
}

}  // namespace

bool DecodeHello(std::string_view params, HelloParams* out, RequestError* error) {
  Params fields(Method::kHello, params, error);
  *out = HelloParams{};
  // 1. The protocol first: the other parameters of another version may mean something else.
  if (!fields.OpenArray(4) || !fields.Optional("protocol", &out->protocol)) return false;
  if (out->protocol != kProtocolVersion) {
    return fields.Fail(ErrorCode::kUnsupported, "protocol",
                       std::to_string(out->protocol) + " is not supported, this server speaks " +
                           std::to_string(kProtocolVersion));
  }
  // 2. Names go into the ledger and into logs, so both are checked.
  if (!ReadNamespace(&fields, &out->name_space)) return false;
  if (!fields.Optional("client_id", &out->client_id)) return false;
  if (out->client_id && !Checked(CheckClientId(*out->client_id), "client_id", &fields)) {
    return false;
  }
  // 3. Options. A wish that this server does not know must not be ignored silently.
  const auto option = [&](std::string_view key) {
    if (key == "lost") return fields.Optional(key, &out->lost);
    if (key == "exclusive") return fields.Optional(key, &out->exclusive);
    if (key == "instance") return ReadUint63(key, &fields, &out->instance);
    if (key == "terms") return fields.Optional(key, &out->terms);
    return fields.FailUnknown(key);
  };
  return (fields.TakeMissing() || fields.ForEachKey("options", option)) && fields.Close();
}

bool DecodeIdentify(std::string_view params, IdentifyParams* out, RequestError* error) {
  Params fields(Method::kIdentify, params, error, kSecretBytesMax);
  *out = IdentifyParams{};
  return fields.OpenArray(1) && fields.Optional("secret", &out->secret) && fields.Close();
}

bool DecodeNoParams(Method method, std::string_view params, RequestError* error) {
  Params fields(method, params, error);
  return fields.OpenArray(0) && fields.Close();
}

bool DecodeAcquire(std::string_view params, AcquireParams* out, RequestError* error) {
  Params fields(Method::kAcquire, params, error);
  *out = AcquireParams{};
  if (!fields.OpenArray(3) || !ReadFlow(&fields, out) || !fields.Required("count", &out->count)) {
    return false;
  }
  const auto option = [&](std::string_view key) {
    return key == "param" ? ReadHeldParam(key, &fields, &out->number, &out->param)
                          : ReadAcquireOption(key, &fields, out);
  };
  return (fields.TakeMissing() || fields.ForEachKey("options", option)) && fields.Close();
}

// Sorts pointers on the stack: comparing all pairs of a full list would cost its square.
bool CheckItems(const std::vector<AcquireAllParams::Item>& items, RequestError* error) {
  std::array<const AcquireAllParams::Item*, kAcquireAllMax> room{};
  const std::span order = std::span(room).first(items.size());
  for (size_t i = 0; i < items.size(); ++i) order[i] = &items[i];
  const auto key = [](const AcquireAllParams::Item* item) {
    const Param param = item->param.value_or(Param{});
    return std::tuple(item->flow_id, item->flow_name, item->param.has_value(), param.type,
                      param.bytes, item->rate);
  };
  std::sort(order.begin(), order.end(),
            [&](const auto* a, const auto* b) { return key(a) < key(b); });
  const auto twice = std::adjacent_find(
      order.begin(), order.end(), [&](const auto* a, const auto* b) { return key(a) == key(b); });
  if (twice == order.end()) return true;
  const std::string flow =
      (*twice)->flow_name.empty() ? std::to_string((*twice)->flow_id) : Quoted((*twice)->flow_name);
  *error = {ErrorCode::kBadParams,
            "acquire_all: items must not hold flow_id " + flow + " with the same param twice"};
  return false;
}

bool DecodeAcquireAll(std::string_view params, AcquireAllParams* out, RequestError* error) {
  Params fields(Method::kAcquireAll, params, error);
  // Member by member: a fresh struct would give the memory of the items away.
  out->prioritized = false;
  out->wait_ms.reset();
  out->request_id = 0;
  out->hold_ms = 0;
  const auto option = [&](std::string_view key) { return ReadAcquireOption(key, &fields, out); };
  return fields.OpenArray(2) && ReadItems(&fields, &out->items) && CheckItems(out->items, error) &&
         (fields.TakeMissing() || fields.ForEachKey("options", option)) && fields.Close();
}

bool DecodeRequest(std::string_view params, RateParams* out, RequestError* error) {
  Params fields(Method::kRequest, params, error);
  *out = RateParams{};
  return fields.OpenArray(3) && ReadFlow(&fields, out) && fields.Required("count", &out->count) &&
         fields.Optional("prioritized", &out->prioritized) && fields.Close();
}

bool DecodeRequestParam(std::string_view params, ValueRateParams* out, ParamList* values,
                        RequestError* error) {
  Params fields(Method::kRequestParam, params, error);
  *out = ValueRateParams{};
  values->Clear();
  // The list itself is required, though it may be empty.
  const auto value = [&] { return values->Read("value", &fields); };
  return fields.OpenArray(3) && ReadFlow(&fields, out) && fields.Required("count", &out->count) &&
         (!fields.TakeMissing() || fields.Fail("values", "is missing")) &&
         fields.ForEachElement("values", value) && fields.Close();
}

bool DecodeCancel(std::string_view params, CancelParams* out, RequestError* error) {
  Params fields(Method::kCancel, params, error);
  *out = CancelParams{};
  if (!fields.OpenArray(1) || !fields.Required("request_id", &out->request_id)) return false;
  if (out->request_id == 0) return fields.Fail("request_id", "must be above 0, got 0");
  return fields.Close();
}

bool DecodeToken(Method method, std::string_view params, TokenParams* out, RequestError* error) {
  Params fields(method, params, error);
  *out = TokenParams{};
  if (method != Method::kRelease) {
    return fields.OpenArray(1) && fields.Required("token_id", &out->token_id) && fields.Close();
  }
  const auto option = [&](std::string_view key) {
    return key == "outcome" ? ReadOutcome(key, &fields, &out->outcome) : fields.FailUnknown(key);
  };
  return fields.OpenArray(2) && fields.Required("token_id", &out->token_id) &&
         (fields.TakeMissing() || fields.ForEachKey("options", option)) && fields.Close();
}

bool DecodeReclaim(std::string_view params, ReclaimParams* out, RequestError* error) {
  Params fields(Method::kReclaim, params, error);
  *out = ReclaimParams{};
  if (!fields.OpenArray(2) || !fields.Required("token_id", &out->token_id) ||
      !fields.Required("reason", &out->reason)) {
    return false;
  }
  return Checked(CheckName(out->reason, kReasonBytesMax), "reason", &fields) && fields.Close();
}

bool DecodeFlow(std::string_view params, FlowParams* out, RequestError* error) {
  Params fields(Method::kFlow, params, error);
  *out = FlowParams{};
  return fields.OpenArray(2) && ReadFlow(&fields, out) && ReadKind("kind", &fields, &out->kind) &&
         fields.Close();
}

bool DecodePage(Method method, std::string_view params, PageParams* out, RequestError* error) {
  Params fields(method, params, error);
  *out = PageParams{};
  return fields.OpenArray(2) && ReadPage(&fields, out) && fields.Close();
}

bool DecodeParams(std::string_view params, ValuesParams* out, RequestError* error) {
  Params fields(Method::kParams, params, error);
  *out = ValuesParams{};
  std::optional<std::string_view> by;
  if (!fields.OpenArray(3) || !ReadFlow(&fields, out) || !ReadRows(&fields, &out->limit) ||
      !fields.Optional("by", &by)) {
    return false;
  }
  // Absent means interval.
  out->by_minute = by == "minute";
  if (by.has_value() && !out->by_minute && by != "interval") {
    return fields.Fail("by", "must be interval or minute, got " + Quoted(*by));
  }
  return fields.Close();
}

bool DecodeWaiters(std::string_view params, WaitersParams* out, RequestError* error) {
  Params fields(Method::kWaiters, params, error);
  *out = WaitersParams{};
  const auto filter = [&](std::string_view key) {
    if (key == "flow_id") return ReadFlowFilter(&fields, out);
    if (key == "client_id") return fields.Optional(key, &out->client_id);
    if (key == "instance") return fields.Optional(key, &out->instance);
    if (key == "kind") return ReadKind(key, &fields, &out->kind);
    return fields.FailUnknown(key);
  };
  return fields.OpenArray(2) && (fields.TakeMissing() || fields.ForEachKey("filter", filter)) &&
         ReadRows(&fields, &out->limit) && fields.Close();
}

bool DecodeRulesList(std::string_view params, RulesListParams* out, RequestError* error) {
  Params fields(Method::kRulesList, params, error);
  *out = RulesListParams{};
  if (!fields.OpenArray(4) || !fields.Optional("namespace", &out->name_space)) return false;
  if (out->name_space && !Checked(CheckNamespace(*out->name_space), "namespace", &fields)) {
    return false;
  }
  return ReadPage(&fields, &out->page) && ReadFlowFilter(&fields, out) && fields.Close();
}

bool DecodeTokens(std::string_view params, TokensParams* out, RequestError* error) {
  Params fields(Method::kTokens, params, error);
  *out = TokensParams{};
  const auto filter = [&](std::string_view key) { return ReadTokensFilter(key, &fields, out); };
  return fields.OpenArray(3) && (fields.TakeMissing() || fields.ForEachKey("filter", filter)) &&
         ReadPage(&fields, &out->page) && fields.Close();
}

bool DecodeRulesLoad(std::string_view params, RulesLoadParams* out, RequestError* error) {
  // One JSON string may fill the message, so only the message's own bound is left.
  Params fields(Method::kRulesLoad, params, error, kMessageBytesMax);
  *out = RulesLoadParams{};
  if (!fields.OpenArray(2) || !ReadNamespace(&fields, &out->name_space)) return false;
  // Two forms: JSON text goes to the parser of rules as it is; MessagePack maps become JSON text
  // first, so there is one parser.
  if (fields.Peek() == Kind::kStr) return fields.Required("rules", &out->json) && fields.Close();
  if (fields.TakeMissing()) return fields.Fail("rules", "is missing");
  if (fields.Peek() != Kind::kArray) {
    return fields.Fail("rules", "must be an array of maps or one JSON str, got " +
                                    std::string(KindName(fields.Peek())));
  }
  std::string_view rules;
  if (!fields.Raw("rules", &rules)) return false;
  Result<std::string> json = JsonTextFromMessagePack(rules);
  if (!json.ok()) return fields.Fail("rules", json.status().message());
  out->json = *std::move(json);
  return fields.Close();
}

}  // namespace nowcalls::wire
