#include "wire/cluster_messages.h"

#include <tuple>

#include "base/limits.h"
#include "wire/field_reader.h"
#include "wire/packing.h"
#include "wire/row_fields.h"

namespace nowcalls::wire {

// The order is that on the wire; see row_fields.h.
template <>
inline constexpr auto kFieldsOf<ClusterMember> = std::tuple{
    Field{"member", &ClusterMember::member},   Field{"address", &ClusterMember::address},
    Field{"version", &ClusterMember::version}, Field{"leads", &ClusterMember::leads},
    Field{"applied", &ClusterMember::applied}, Field{"synced", &ClusterMember::synced},
    Field{"lag", &ClusterMember::lag},         Field{"silent_ms", &ClusterMember::silent_ms},
};

void EncodeCluster(uint32_t msgid, const ClusterReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(8);
  PackString(reply.cluster, &packer);
  PackString(reply.prefix, &packer);
  packer.pack_uint64(reply.term);
  PackString(reply.writer, &packer);
  packer.pack_uint64(reply.last_batch);
  packer.pack_uint64(reply.log_bytes);
  packer.pack_uint64(reply.log_bytes_max);
  packer.pack_array(static_cast<uint32_t>(reply.members.size()));
  for (const ClusterMember& member : reply.members) PackRow(member, &packer);
}

Result<ClusterReply> DecodeClusterReply(std::string_view result) {
  RequestError error;
  FieldReader fields("cluster answer", result, kReplyBytesMax, &error);
  ClusterReply reply;
  const auto read_member = [&] { return ReadRow(&fields, &reply.members.emplace_back()); };
  const bool decoded = fields.OpenArray() && fields.Required("cluster", &reply.cluster) &&
                       fields.Required("prefix", &reply.prefix) &&
                       fields.Required("term", &reply.term) &&
                       fields.Required("writer", &reply.writer) &&
                       fields.Required("last_batch", &reply.last_batch) &&
                       fields.Required("log_bytes", &reply.log_bytes) &&
                       fields.Required("log_bytes_max", &reply.log_bytes_max) &&
                       fields.ForEachElement("members", read_member) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return reply;
}

}  // namespace nowcalls::wire
