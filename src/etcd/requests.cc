#include "etcd/requests.h"

#include <string>

namespace nowcalls::etcd {
namespace {

namespace pb = etcdserverpb;
using cluster::Compare;
using cluster::Operation;

void Write(const Compare& compare, pb::Compare* to) {
  to->set_key(compare.key);
  to->set_result(pb::Compare::EQUAL);
  switch (compare.what) {
    case Compare::What::kVersion:
      to->set_target(pb::Compare::VERSION);
      to->set_version(compare.number);
      break;
    case Compare::What::kCreateRevision:
      to->set_target(pb::Compare::CREATE);
      to->set_create_revision(compare.number);
      break;
    case Compare::What::kValue:
      to->set_target(pb::Compare::VALUE);
      to->set_value(compare.value);
      break;
  }
}

void Write(const Operation& operation, pb::RequestOp* to) {
  switch (operation.kind) {
    case Operation::Kind::kGet: {
      pb::RangeRequest* const get = to->mutable_request_range();
      get->set_key(operation.key);
      get->set_range_end(operation.end);
      get->set_limit(operation.rows_max);
      get->set_keys_only(operation.keys_only);
      if (operation.descending) get->set_sort_order(pb::RangeRequest::DESCEND);
      break;
    }
    case Operation::Kind::kPut: {
      pb::PutRequest* const put = to->mutable_request_put();
      put->set_key(operation.key);
      put->set_value(operation.value);
      put->set_lease(operation.lease);
      break;
    }
    case Operation::Kind::kDelete: {
      pb::DeleteRangeRequest* const away = to->mutable_request_delete_range();
      away->set_key(operation.key);
      away->set_range_end(operation.end);
      break;
    }
  }
}

// etcd tells by the code whether the request was surely not carried out only in these cases.
StatusCode CodeOf(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::OUT_OF_RANGE: return StatusCode::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND: return StatusCode::kNotFound;
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED: return StatusCode::kPermissionDenied;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return StatusCode::kResourceExhausted;
    default: return StatusCode::kOutcomeUnknown;
  }
}

}  // namespace

pb::TxnRequest RequestOf(const cluster::Txn& txn) {
  pb::TxnRequest request;
  for (const Compare& compare : txn.compares) Write(compare, request.add_compare());
  for (const Operation& operation : txn.then) Write(operation, request.add_success());
  for (const Operation& operation : txn.otherwise) Write(operation, request.add_failure());
  return request;
}

cluster::TxnReply ReplyOf(const pb::TxnResponse& response) {
  cluster::TxnReply reply{.succeeded = response.succeeded(),
                          .revision = response.header().revision()};
  for (const pb::ResponseOp& operation : response.responses()) {
    if (!operation.has_response_range()) continue;
    std::vector<cluster::Row>& rows = reply.found.emplace_back();
    for (const pb::KeyValue& found : operation.response_range().kvs()) {
      rows.push_back({.key = found.key(),
                      .value = found.value(),
                      .create_revision = found.create_revision(),
                      .version = found.version(),
                      .lease = found.lease()});
    }
  }
  return reply;
}

Status StatusOf(const grpc::Status& status, std::string_view endpoint) {
  if (status.ok()) return {};
  return {CodeOf(status), "etcd at " + std::string(endpoint) + ": " + status.error_message()};
}

bool IsOldToken(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
}

}  // namespace nowcalls::etcd
