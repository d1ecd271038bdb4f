#include "wire/namespace_rows.h"

#include "base/limits.h"
#include "wire/field_reader.h"
#include "wire/packing.h"

namespace nowcalls::wire {
namespace {

void PackRow(const NamespaceRow& row, Packer* packer) {
  packer->pack_map(3 + (row.source ? 1U : 0U) + (row.sessions_online ? 1U : 0U));
  PackString("namespace", packer);
  PackString(row.name_space, packer);
  if (row.source) {
    PackString("source", packer);
    PackString(*row.source, packer);
  }
  PackString("rules", packer);
  packer->pack_uint64(row.rules);
  PackString("sessions", packer);
  packer->pack_uint64(row.sessions);
  if (row.sessions_online) {
    PackString("sessions_online", packer);
    packer->pack_uint64(*row.sessions_online);
  }
}

bool ReadField(std::string_view key, FieldReader* fields, NamespaceRow* row) {
  if (key == "namespace") return fields->Required(key, &row->name_space);
  if (key == "source") return fields->Optional(key, &row->source);
  if (key == "rules") return fields->Required(key, &row->rules);
  if (key == "sessions") return fields->Required(key, &row->sessions);
  if (key == "sessions_online") return fields->Optional(key, &row->sessions_online);
  return fields->Skip(key);
}

bool ReadRow(FieldReader* fields, NamespaceRow* row) {
  return fields->ForEachKey("row",
                            [&](std::string_view key) { return ReadField(key, fields, row); });
}

}  // namespace

void EncodeNamespacePage(uint32_t msgid, const std::vector<NamespaceRow>& rows,
                         uint64_t next_cursor, OutputBuffer* out) {
  Packer packer(*out);
  BeginPage(msgid, rows.size(), &packer);
  for (const NamespaceRow& row : rows) PackRow(row, &packer);
  PackCursor(next_cursor, &packer);
}

Result<Page<NamespaceRow>> DecodeNamespacePage(std::string_view result) {
  RequestError error;
  FieldReader fields("namespaces answer", result, kReplyBytesMax, &error);
  Page<NamespaceRow> page;
  const bool decoded = fields.OpenArray() &&
                       fields.ForEachElement("rows",
                                             [&] {
                                               page.rows.emplace_back();
                                               return ReadRow(&fields, &page.rows.back());
                                             }) &&
                       fields.Optional("next_cursor", &page.next_cursor) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return page;
}

}  // namespace nowcalls::wire
