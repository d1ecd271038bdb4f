// Fuzz targets: each takes any bytes and ends the process, or fails the test case that it runs in,
// when the code under test does not keep a promise.
//
// Thread: one at a time. A target keeps nothing between two calls. libFuzzer drives them
// (tools/dev fuzz), and replay_test.cc runs each on its seeds and its corpus.
#ifndef NOWCALLS_FUZZ_TARGETS_H_
#define NOWCALLS_FUZZ_TARGETS_H_

#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::fuzz {

// A script of what connections do to an engine: see wire_target.cc.
void FuzzWire(std::string_view input);
// The same with frames of Sentinel's clients: see sentinel_target.cc.
void FuzzSentinel(std::string_view input);
// A decoder of the ledger's records, by the first byte, and what it is to decode.
void FuzzLedger(std::string_view input);
// A file of rules.
void FuzzRules(std::string_view input);
// A configuration file, or flags and variables, by the first byte.
void FuzzConfig(std::string_view input);
// An access file.
void FuzzAccess(std::string_view input);
// A log: records that are damaged afterwards, or any bytes, by the first byte.
void FuzzLog(std::string_view input);
// A request of HTTP, and a name of what it shows: see http_target.cc.
void FuzzHttp(std::string_view input);
// What arrives at the token port before its protocol: see tls_target.cc.
void FuzzTls(std::string_view input);

inline constexpr std::string_view kTargets[] = {"wire",   "sentinel", "ledger", "rules", "config",
                                                "access", "log",      "http",   "tls"};

// Inputs to begin with, made of the golden vectors and the sample files; and those that once
// failed.
std::vector<std::string> SeedsOf(std::string_view target);

}  // namespace nowcalls::fuzz

#endif  // NOWCALLS_FUZZ_TARGETS_H_
