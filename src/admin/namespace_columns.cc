#include "admin/namespace_columns.h"

#include <optional>
#include <string>
#include <string_view>

namespace nowcalls::admin {
namespace {

using wire::NamespaceRow;

template <typename T>
Cell Number(const std::optional<T>& number) {
  return number.has_value() ? Cell(*number) : Cell();
}

Cell Words(const std::optional<std::string>& words) {
  if (!words.has_value()) return {};
  const std::string_view text = *words;
  return Cell(text);
}

constexpr Column<NamespaceRow> kNamespaceColumns[] = {
    {{"namespace", "NAMESPACE", Kind::kText},
     [](const NamespaceRow& r) { return Text(r.name_space); }},
    {{"rules", "RULES", Kind::kNumber}, [](const NamespaceRow& r) -> Cell { return r.rules; }},
    {{"sessions", "SESSIONS", Kind::kNumber},
     [](const NamespaceRow& r) -> Cell { return r.sessions; }},
    {{"sessions_online", "ONLINE", Kind::kNumber},
     [](const NamespaceRow& r) { return Number(r.sessions_online); }},
    {{"source", "SOURCE", Kind::kWholeText}, [](const NamespaceRow& r) { return Words(r.source); }},
    {{"warnings", "WARNINGS", Kind::kNumber, 2},
     [](const NamespaceRow& r) { return Number(r.warnings); }},
    {{"loaded_ms", "LOADED", Kind::kAge, 1, /*rare=*/true},
     [](const NamespaceRow& r) { return Number(r.loaded_ms); }},
    {{"refused_ms", "REFUSED", Kind::kAge, 0, /*rare=*/true},
     [](const NamespaceRow& r) { return Number(r.refused_ms); }},
    {{"requests_max", "GUARD", Kind::kNumber, 3, /*rare=*/true},
     [](const NamespaceRow& r) { return Number(r.requests_max); }},
    {{"refusal", "WHY_REFUSED", Kind::kText},
     [](const NamespaceRow& r) { return Words(r.refusal); }},
};

}  // namespace

template <>
std::span<const Column<NamespaceRow>> ColumnsOf() {
  return kNamespaceColumns;
}

}  // namespace nowcalls::admin
