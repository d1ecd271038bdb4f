// `info`: what a server says of itself, its ledger, its counters and its limits.
//
// The server's document has no fixed layout and grows with it, so it is shown as it comes: as jsonl
// the document itself, else one row a figure, named by its path ("counts.tokens").
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "admin/commands.h"
#include "wire/json.h"

namespace nowcalls::admin {
namespace {

using nlohmann::ordered_json;

struct InfoRow {
  std::string name;
  std::string value;
};

constexpr Column<InfoRow> kInfoColumns[] = {
    {{"name", "NAME", Kind::kText},
     [](const InfoRow& r) -> Cell { return std::string_view{r.name}; }},
    {{"value", "VALUE", Kind::kText},
     [](const InfoRow& r) -> Cell { return std::string_view{r.value}; }},
};

Status AddFigures(const std::string& path, const ordered_json& value, Listing<InfoRow>* listing) {
  if (!value.is_object()) {
    return listing->Add({path, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  for (const auto& [key, member] : value.items()) {
    NOWCALLS_RETURN_IF_ERROR(AddFigures(path.empty() ? key : path + "." + key, member, listing));
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
  if (!info.ok()) return info.status();
  if (format == Format::kJsonl) {
    out->Write(info->dump() + "\n");
    return {};
  }
  Listing<InfoRow> listing(format, /*now_ms=*/0, out);
  Status status = AddFigures("", *info, &listing);
  listing.Finish();
  return status;
}

}  // namespace nowcalls::admin
