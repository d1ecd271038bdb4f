// The kinds of entities of a ledger, a row each.
//
// Thread: any.
#ifndef NOWCALLS_LEDGER_ENTITY_TABLE_H_
#define NOWCALLS_LEDGER_ENTITY_TABLE_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <variant>

#include "ledger/entity_visitor.h"
#include "ledger/families.h"
#include "ledger/record_types.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

// A row of a family.
struct StoredRow {
  Family family;
  std::string_view key;
  std::string_view value;
};

// How a commit record holds a key or a value.
struct Field {
  size_t bytes = 0;       // Always so many; 0: its size precedes it.
  size_t size_bytes = 0;  // Of that size: 2 or 4.
};

struct EntityKind {
  std::string_view name;  // For people.
  Family family;          // Of tokens the first of three.
  // Records that put and delete it. None: nothing deletes meta records; tokens have records of
  // their own (apply_records.cc).
  std::optional<RecordType> put{};
  std::optional<RecordType> deleted{};
  std::string_view meta_key{};  // Of kMeta: the key, which no record repeats.
  Field key{};
  Field value{};
  // Tells its keys from those of the kinds below it in its family; nullptr: takes all.
  bool (*is_key)(std::string_view key) = nullptr;
  Status (*check_key)(const StoredRow& row) = nullptr;  // REQUIRES: `deleted`.
  Status (*check)(const StoredRow& row);
  // Shows what the row holds, or the failure to decode it (OnBadRecord).
  Status (*show)(const StoredRow& row, EntityVisitor* visitor);
};

inline constexpr size_t kEntityKindCount = std::variant_size_v<Entity>;
// In the order of Entity.
extern const std::array<EntityKind, kEntityKindCount> kEntityKinds;

inline const EntityKind& KindOf(const Entity& entity) { return kEntityKinds[entity.index()]; }
template <typename T>
const EntityKind& KindOf() {
  return KindOf(Entity(static_cast<const T*>(nullptr)));
}
// nullptr: a key of kMeta that is unknown.
const EntityKind* FindKind(const StoredRow& row);

// As EntityKind::show; also a row of no kind goes to OnBadRecord.
Status ShowRow(const StoredRow& row, EntityVisitor* visitor);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_ENTITY_TABLE_H_
