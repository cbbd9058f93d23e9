#pragma once

// The addresses of a socket, the same on both systems. Included by socket_posix.cpp and socket_windows.cpp alone, behind the system's own
// headers, which declare what is called here.

#include <cstdlib>

#include "core/server/socket.h"

namespace headroom::server {
namespace {

// read: getpeername or getsockname.
template <class Read>
SocketAddress address_of(SocketHandle socket, Read read) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (read(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
    char ip[NI_MAXHOST];
    char port[NI_MAXSERV];
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, ip, sizeof ip, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return {};
    return {.ip = ip, .port = std::atoi(port)};
}

}  // namespace

SocketAddress remote_address(SocketHandle socket) { return address_of(socket, getpeername); }
SocketAddress local_address(SocketHandle socket) { return address_of(socket, getsockname); }

}  // namespace headroom::server
