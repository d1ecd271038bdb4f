// `info`: what a server says of itself, its ledger, its counters and its limits.
//
// The server's document has no fixed layout and grows with it, so it is shown as it comes: as jsonl
// the document itself, else one row a figure, named by its path ("counts.tokens").
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "admin/commands.h"
#include "base/duration.h"
#include "base/shown_text.h"
#include "wire/json.h"

namespace nowcalls::admin {
namespace {

using nlohmann::ordered_json;

struct InfoRow {
  std::string name;
  std::string value;
};

constexpr Column<InfoRow> kInfoColumns[] = {
    {{"name", "NAME", Kind::kWholeText},
     [](const InfoRow& r) -> Cell { return std::string_view{r.name}; }},
    {{"value", "VALUE", Kind::kWholeText},
     [](const InfoRow& r) -> Cell { return std::string_view{r.value}; }},
};

constexpr char kOldestPath[] = "counts.oldest_issued_ms";

// A number in a map of the document; 0 when there is none, whatever there is in its place.
int64_t NumberOf(const ordered_json& info, const char* map, const char* key) {
  if (!info.is_object()) return 0;
  const auto found = info.find(map);
  if (found == info.end() || !found->is_object()) return 0;
  const auto value = found->find(key);
  return value != found->end() && value->is_number_integer() ? value->get<int64_t>() : 0;
}

// "oldest token 5.0s", by the server's own clock; empty when there is none, or no clock.
std::string OldestAge(const ordered_json& info) {
  const int64_t oldest_ms = NumberOf(info, "counts", "oldest_issued_ms");
  const int64_t now_ms = NumberOf(info, "ledger", "ledger_ms");
  if (oldest_ms <= 0 || now_ms <= 0) return "";
  return "oldest token " + HumanDuration(std::max<int64_t>(0, now_ms - oldest_ms));
}

// `oldest` stands behind the figure of kOldestPath.
Status AddFigures(const std::string& path, const ordered_json& value, const std::string& oldest,
                  Listing<InfoRow>* listing) {
  if (!value.is_object()) {
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (path == kOldestPath && !oldest.empty()) text += "  " + oldest;
    return listing->Add({path, text});
  }
  for (const auto& [key, member] : value.items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    NOWCALLS_RETURN_IF_ERROR(AddFigures(inner, member, oldest, listing));
  }
  return {};
}

Status InfoNotUnderstood(const std::string& what) {
  return Status::OutcomeUnknown("the server's answer to info was not understood: " + what);
}

// What every server of nowcalls tells; the rest grows with it.
Status CheckInfo(const ordered_json& info) {
  if (!info.is_object()) return InfoNotUnderstood("it is no map");
  // Another server that speaks MessagePack-RPC may answer to info, too.
  const auto version = info.find("version");
  if (version == info.end() || !version->is_string()) {
    return InfoNotUnderstood("it tells no version; check HOST:PORT");
  }
  return {};
}

}  // namespace

template <>
std::span<const Column<InfoRow>> ColumnsOf() {
  return kInfoColumns;
}

Status PrintInfo(Format format, std::string_view encoded, Output* out) {
  const Result<ordered_json> info = wire::JsonFromMessagePack(encoded);
  if (!info.ok()) return InfoNotUnderstood(info.status().message());
  NOWCALLS_RETURN_IF_ERROR(CheckInfo(*info));
  if (format == Format::kJsonl) {
    out->Write(ShownJson(info->dump()) + "\n");
    return {};
  }
  Listing<InfoRow> listing(format, /*now_ms=*/0, out);
  const std::string oldest = format == Format::kTable ? OldestAge(*info) : "";
  Status status = AddFigures("", *info, oldest, &listing);
  listing.Finish();
  return status;
}

}  // namespace nowcalls::admin
