#include "wire/namespace_rows.h"

#include <tuple>

#include "wire/row_fields.h"

namespace nowcalls::wire {

// The order is that on the wire; see row_fields.h.
template <>
inline constexpr auto kFieldsOf<NamespaceRow> = std::tuple{
    Field{"namespace", &NamespaceRow::name_space},
    Field{"source", &NamespaceRow::source},
    Field{"rules", &NamespaceRow::rules},
    Field{"sessions", &NamespaceRow::sessions},
    Field{"sessions_online", &NamespaceRow::sessions_online},
    Field{"loaded_ms", &NamespaceRow::loaded_ms},
    Field{"refused_ms", &NamespaceRow::refused_ms},
    Field{"refusal", &NamespaceRow::refusal},
    Field{"warnings", &NamespaceRow::warnings},
    Field{"requests_max", &NamespaceRow::requests_max},
};

void EncodeNamespacePage(uint32_t msgid, const std::vector<NamespaceRow>& rows,
                         uint64_t next_cursor, OutputBuffer* out) {
  EncodeRows(msgid, rows, next_cursor, out);
}

Result<Page<NamespaceRow>> DecodeNamespacePage(std::string_view result) {
  return DecodeRows<NamespaceRow>("namespaces answer", result);
}

}  // namespace nowcalls::wire
