// The client against a real etcd, and the simulated one beside it.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "cluster/claimed_log.h"
#include "etcd/client.h"
#include "support/certificates.h"
#include "support/etcd_process.h"
#include "support/fake_etcd.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/tcp.h"
#include "support/temp_dir.h"

namespace nowcalls::etcd {
namespace {

using cluster::Compare;
using cluster::Operation;
using cluster::Txn;
using testing::EtcdProcess;
using testing::kPatienceMs;
using testing::PollUntil;

cluster::EtcdOptions At(const EtcdProcess& etcd) { return {.endpoints = {etcd.address()}}; }

// A node that has just started has no leader yet.
cluster::TxnReply CommitAtLast(Client* client, const Txn& txn) {
  Result<cluster::TxnReply> reply = Status::Unavailable("not asked");
  REQUIRE_MESSAGE(PollUntil(kPatienceMs,
                            [&] {
                              reply = client->Commit(txn);
                              return reply.ok();
                            }),
                  reply.status().message());
  return *std::move(reply);
}

std::string RandomKey(Prng* prng) { return "/p/" + std::string(1, 'a' + prng->Below(5)); }

Operation RandomOperation(Prng* prng, int64_t lease) {
  Operation operation{.kind = static_cast<Operation::Kind>(prng->Below(3)), .key = RandomKey(prng)};
  if (operation.kind == Operation::Kind::kPut) {
    operation.value = std::string(prng->Below(4), 'v');
    if (prng->Below(3) == 0) operation.lease = lease;
  } else if (prng->Below(2) == 0) {
    operation.end = RandomKey(prng);
  }
  if (operation.kind == Operation::Kind::kGet) {
    operation.rows_max = prng->Between(0, 3);
    operation.descending = prng->Below(2) == 0;
    operation.keys_only = prng->Below(2) == 0;
  }
  return operation;
}

Txn RandomTxn(Prng* prng, int64_t lease) {
  Txn txn;
  for (uint64_t i = prng->Below(3); i > 0; --i) {
    txn.compares.push_back({.key = RandomKey(prng),
                            .what = static_cast<Compare::What>(prng->Below(3)),
                            .number = prng->Between(0, 4),
                            .value = std::string(prng->Below(3), 'v')});
  }
  for (uint64_t i = prng->Below(4); i > 0; --i) txn.then.push_back(RandomOperation(prng, lease));
  for (uint64_t i = prng->Below(4); i > 0; --i) {
    txn.otherwise.push_back(RandomOperation(prng, lease));
  }
  return txn;
}

std::string Shown(const Result<cluster::TxnReply>& reply, int64_t lease) {
  if (!reply.ok()) return std::string(StatusCodeName(reply.status().code()));
  std::string text = reply->succeeded ? "then " : "otherwise ";
  text += std::to_string(reply->revision);
  for (const auto& rows : reply->found) {
    text += " |";
    for (const cluster::Row& row : rows) {
      text += " " + row.key + "=" + row.value + "@" + std::to_string(row.create_revision) + "#" +
              std::to_string(row.version) + (row.lease == lease ? "L" : "");
    }
  }
  return text;
}

TEST_CASE("the simulated etcd answers as the real one does") {
  const EtcdProcess etcd;
  Client client(At(etcd));
  testing::FakeEtcd fake;
  CommitAtLast(&client, {.then = {cluster::Get("/p/a")}});
  const Result<cluster::LeaseTime> lease = client.Grant(60'000);
  REQUIRE(lease.ok());
  const int64_t fake_lease = fake.GrantLease();
  Prng prng(7);
  int done = 0;
  for (int i = 0; i < 1'000; ++i) {
    Prng same = prng;
    const Txn txn = RandomTxn(&prng, lease->id);
    const std::string expected = Shown(client.Commit(txn), lease->id);
    REQUIRE(Shown(fake.Commit(RandomTxn(&same, fake_lease)), fake_lease) == expected);
    done += expected.starts_with("then") ? 1 : 0;
  }
  CHECK(done > 200);
  // The keys of a lease go with it.
  REQUIRE(client.Revoke(lease->id).ok());
  fake.EndLease(fake_lease);
  const Txn all{.then = {{.key = "/p/", .end = "/p0"}}};
  CHECK(Shown(fake.Commit(all), fake_lease) == Shown(client.Commit(all), lease->id));
}

TEST_CASE("a lease lives while it is renewed") {
  const EtcdProcess etcd;
  Client client(At(etcd));
  CommitAtLast(&client, {.then = {cluster::Get("k")}});
  const Result<cluster::LeaseTime> lease = client.Grant(1'000);
  REQUIRE(lease.ok());
  CHECK(lease->ttl_ms >= 1'000);
  REQUIRE(client.Commit({.then = {cluster::Put("k", "v", lease->id)}}).ok());
  const auto there = [&] {
    return !CommitAtLast(&client, {.then = {cluster::Get("k")}}).found[0].empty();
  };
  const Result<cluster::LeaseTime> renewed = client.Renew(lease->id);
  REQUIRE(renewed.ok());
  CHECK(renewed->ttl_ms == lease->ttl_ms);
  CHECK(there());
  CHECK(PollUntil(kPatienceMs, [&] { return !there(); }));
  CHECK(client.Renew(lease->id).status().code() == StatusCode::kNotFound);
  CHECK(client.Revoke(lease->id).ok());
}

TEST_CASE("a change ends the wait for it, also one that came before") {
  const EtcdProcess etcd;
  Client client(At(etcd));
  const int64_t before = CommitAtLast(&client, {.then = {cluster::Put("k", "1")}}).revision;
  REQUIRE(client.Commit({.then = {{.kind = Operation::Kind::kDelete, .key = "k"}}}).ok());
  client.AwaitChange("k", before, 10 * kPatienceMs);
  client.AwaitChange("k", before + 1, 1);
}

TEST_CASE("history is forgotten on demand, and twice is no error") {
  const EtcdProcess etcd;
  Client client(At(etcd));
  const int64_t revision = CommitAtLast(&client, {.then = {cluster::Put("k", "1")}}).revision;
  CHECK(client.Compact(revision).ok());
  CHECK(client.Compact(revision).ok());
  CHECK(client.Compact(revision - 1).ok());
  CHECK(client.Compact(revision + 10).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("an endpoint that is gone costs one attempt, and comes back") {
  EtcdProcess etcd;
  Client client({.endpoints = {{"127.0.0.1", testing::FreePort()}, etcd.address()}});
  CommitAtLast(&client, {.then = {cluster::Put("k", "1")}});
  REQUIRE(client.Commit({.then = {cluster::Get("k")}}).ok());
  etcd.Kill();
  const Status gone = client.Commit({.then = {cluster::Get("k")}}).status();
  CHECK(gone.code() == StatusCode::kOutcomeUnknown);
  CHECK(gone.message().starts_with("etcd at 127.0.0.1:"));
  etcd.Start();
  CHECK(CommitAtLast(&client, {.then = {cluster::Get("k")}}).found[0][0].value == "1");
}

TEST_CASE("an etcd that stands still costs the time of one answer") {
  const EtcdProcess etcd;
  Client client({.endpoints = {etcd.address()}, .answer_ms_max = 50});
  CommitAtLast(&client, {.then = {cluster::Put("k", "1")}});
  etcd.Stop();
  CHECK(client.Commit({.then = {cluster::Put("k", "2")}}).status().code() ==
        StatusCode::kOutcomeUnknown);
  etcd.Signal(SIGCONT);
  CommitAtLast(&client, {.then = {cluster::Get("k")}});
}

TEST_CASE("an etcd that is full says so, and takes what frees room") {
  const EtcdProcess etcd({"--quota-backend-bytes", "1000000"});
  Client client(At(etcd));
  CommitAtLast(&client, {.then = {cluster::Put("k", "1")}});
  Status status;
  CHECK(PollUntil(kPatienceMs, [&] {
    status = client.Commit({.then = {cluster::Put("k", std::string(100'000, 'x'))}}).status();
    return status.code() == StatusCode::kResourceExhausted;
  }));
  CHECK_MESSAGE(testing::Contains(status.message(), "space exceeded"), status.message());
  CHECK(client.Commit({.then = {{.kind = Operation::Kind::kDelete, .key = "k"}}}).ok());
}

TEST_CASE("TLS shows both sides who the other is") {
  const testing::TempDir dir;
  const testing::Authority authority("authority");
  const testing::Authority stranger("stranger");
  const testing::CertificateSpec spec{.common_name = "etcd", .names = {{'I', "127.0.0.1"}}};
  const auto files = testing::WriteCertificate(dir.path(), "etcd", authority.Issue(spec));
  testing::WriteStringToFile(dir.Sub("ca.pem"), authority.certificate());
  const EtcdProcess etcd({"--cert-file", files.certificate, "--key-file", files.key,
                          "--trusted-ca-file", dir.Sub("ca.pem"), "--client-cert-auth"},
                         "https");
  const testing::IssuedCertificate own = authority.Issue({.common_name = "member"});
  cluster::EtcdOptions options = At(etcd);
  options.tls = true;
  options.ca = authority.certificate();
  options.certificate = own.certificate;
  options.key = own.key;
  Client client(options);
  CommitAtLast(&client, {.then = {cluster::Put("k", "1")}});
  SUBCASE("an etcd of another authority is not believed") { options.ca = stranger.certificate(); }
  SUBCASE("a member of another authority is not let in") {
    const testing::IssuedCertificate other = stranger.Issue({.common_name = "member"});
    options.certificate = other.certificate;
    options.key = other.key;
  }
  SUBCASE("a member without a certificate is not let in") {
    options.certificate = options.key = "";
  }
  Client other(options);
  CHECK_FALSE(other.Commit({.then = {cluster::Get("k")}}).ok());
}

// With the calls of etcd's gateway for JSON.
void EnableUsers(const EtcdProcess& etcd) {
  const std::pair<const char*, const char*> calls[] = {
      {"user/add", R"({"name":"root","password":"secret"})"},
      {"role/add", R"({"name":"root"})"},
      {"user/grant", R"({"user":"root","role":"root"})"},
      {"auth/enable", "{}"}};
  for (const auto& [call, body] : calls) {
    const std::string path =
        std::string(call) == "auth/enable" ? call : "auth/" + std::string(call);
    const testing::Finished done =
        testing::RunProgram({"/usr/bin/curl", "-sf",
                             "http://" + etcd.address().ToString() + "/v3/" + path, "-d", body});
    REQUIRE_MESSAGE(done.exit_code == 0, path);
  }
}

TEST_CASE("an etcd with users asks for a name and a password") {
  EtcdProcess etcd;
  Client nobody(At(etcd));
  CommitAtLast(&nobody, {.then = {cluster::Put("k", "1")}});
  EnableUsers(etcd);
  CHECK(nobody.Commit({.then = {cluster::Get("k")}}).status().code() ==
        StatusCode::kInvalidArgument);
  cluster::EtcdOptions options = At(etcd);
  options.user = "root";
  options.password = "wrong";
  Client wrong(options);
  const Status refused = wrong.Commit({.then = {cluster::Get("k")}}).status();
  CHECK_FALSE(refused.ok());
  CHECK_FALSE(testing::Contains(refused.message(), "wrong"));
  options.password = "secret";
  Client client(options);
  CHECK(client.Commit({.then = {cluster::Get("k")}}).ok());
  // Tokens do not outlive the process.
  etcd.Kill();
  etcd.Start();
  CommitAtLast(&client, {.then = {cluster::Get("k")}});
}

}  // namespace
}  // namespace nowcalls::etcd
