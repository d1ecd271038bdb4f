#include "cluster/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace nowcalls::cluster {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTextBytesMax = 1'024;
constexpr size_t kRecordBytesMax = 8'192;
constexpr size_t kIdDigits = 32;

bool IsId(std::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The members of one object; a later version may write more of them.
class Fields {
 public:
  explicit Fields(std::string_view json)
      : object_(Json::parse(json.substr(0, kRecordBytesMax), nullptr, /*allow_exceptions=*/false)),
        wrong_(!object_.is_object()) {}

  void Take(const char* name, std::string* text) {
    const Json* field = Find(name);
    const auto* found = field == nullptr ? nullptr : field->get_ptr<const Json::string_t*>();
    wrong_ = wrong_ || found == nullptr || found->size() > kTextBytesMax;
    if (!wrong_) *text = *found;
  }
  void Take(const char* name, uint64_t* number) {
    const Json* field = Find(name);
    wrong_ = wrong_ || field == nullptr || !field->is_number_unsigned();
    if (!wrong_) *number = field->get<uint64_t>();
  }
  void Take(const char* name, bool* yes) {
    const Json* field = Find(name);
    wrong_ = wrong_ || field == nullptr || !field->is_boolean();
    if (!wrong_) *yes = field->get<bool>();
  }
  bool wrong() const { return wrong_; }

 private:
  const Json* Find(const char* name) const {
    if (wrong_) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }

  Json object_;
  bool wrong_;
};

}  // namespace

std::string Claim::ToJson() const {
  return Json{{"nonce", nonce}, {"term", term}, {"member", member}, {"address", address}}.dump();
}

Result<Claim> Claim::FromJson(std::string_view json) {
  Claim claim;
  Fields fields(json);
  fields.Take("nonce", &claim.nonce);
  fields.Take("term", &claim.term);
  fields.Take("member", &claim.member);
  fields.Take("address", &claim.address);
  if (fields.wrong() || !IsId(claim.nonce) || claim.term == 0) {
    return Status::Corruption("the key 'writer' in etcd has a value that is no claim");
  }
  return claim;
}

std::string MemberRecord::ToJson() const {
  return Json{{"member", member},   {"address", address}, {"version", version}, {"leads", leads},
              {"applied", applied}, {"synced", synced},   {"lag", lag}}
      .dump();
}

Result<MemberRecord> MemberRecord::FromJson(std::string_view json) {
  MemberRecord record;
  Fields fields(json);
  fields.Take("member", &record.member);
  fields.Take("address", &record.address);
  fields.Take("version", &record.version);
  fields.Take("leads", &record.leads);
  fields.Take("applied", &record.applied);
  fields.Take("synced", &record.synced);
  fields.Take("lag", &record.lag);
  if (fields.wrong()) {
    return Status::Corruption("a key below 'members' in etcd has a value that is no member");
  }
  return record;
}

std::string Lineage::ToJson() const {
  return Json{{"id", id}, {"base", base}, {"term", term}, {"format", format}, {"secret", secret}}
      .dump();
}

Result<Lineage> Lineage::FromJson(std::string_view json) {
  Lineage lineage;
  Fields fields(json);
  fields.Take("id", &lineage.id);
  fields.Take("base", &lineage.base);
  fields.Take("term", &lineage.term);
  fields.Take("format", &lineage.format);
  fields.Take("secret", &lineage.secret);
  if (fields.wrong() || !IsId(lineage.id)) {
    return Status::Corruption("the key 'cluster' in etcd has a value that names no cluster");
  }
  return lineage;
}

}  // namespace nowcalls::cluster
