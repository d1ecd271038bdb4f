// TCP sockets of test clients.
//
// Thread: any.
#ifndef NOWCALLS_SUPPORT_TCP_H_
#define NOWCALLS_SUPPORT_TCP_H_

#include <cstdint>
#include <string>

namespace nowcalls::testing {

// A socket that listens on 127.0.0.1 on a port of the system's choice. Throws std::runtime_error.
int ListenOnLoopback(uint16_t* port);

// A port that was free just now, for programs that cannot choose one. Another may be quicker.
// Throws std::runtime_error.
uint16_t FreePort();

// A connected socket that does not block; -1: refused. `address` is 127.0.0.1:PORT; `source`, an
// address of this machine or empty, is where the socket comes from.
int ConnectTo(const std::string& address, const std::string& source = {});

// Until poll()'s `events` of the socket, by base/clock.h's BoottimeMs. False: they did not come.
bool WaitFor(int fd, int16_t events, int64_t deadline_ms);

// HOST:PORT of this end of a connection; empty without one.
std::string LocalAddressOf(int fd);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_TCP_H_
