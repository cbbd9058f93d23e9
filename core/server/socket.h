#pragma once

// The few calls on a connected socket that the HTTP layer makes itself: socket_posix.cpp and socket_windows.cpp.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace headroom::server {

#ifdef _WIN32
using SocketHandle = std::uintptr_t;
#else
using SocketHandle = int;
#endif

enum class SocketWait : std::uint8_t { ready, timeout, failed };
[[nodiscard]] SocketWait wait_readable(SocketHandle socket, std::chrono::milliseconds timeout) noexcept;
[[nodiscard]] SocketWait wait_writable(SocketHandle socket, std::chrono::milliseconds timeout) noexcept;

// Bytes received or sent; 0: the other side has closed (receive), nothing fits just now (send); -1: the connection is broken. Neither waits
// after the wait function has said ready.
[[nodiscard]] std::ptrdiff_t receive(SocketHandle socket, char* data, std::size_t size) noexcept;
[[nodiscard]] std::ptrdiff_t send(SocketHandle socket, const char* data, std::size_t size) noexcept;

// Whether the other side has closed the connection, or it is broken. Takes nothing from what it has sent.
[[nodiscard]] bool is_closed(SocketHandle socket) noexcept;

// Small pieces of a stream go out at once.
void send_at_once(SocketHandle socket) noexcept;
// Room for so many connections that nobody has accepted yet; on a socket that listens already.
void set_backlog(SocketHandle socket, int connections) noexcept;
// No more will be sent.
void end_sending(SocketHandle socket) noexcept;
void close_socket(SocketHandle socket) noexcept;

struct SocketAddress {
    std::string ip;
    int port = 0;
};
[[nodiscard]] SocketAddress remote_address(SocketHandle socket);
[[nodiscard]] SocketAddress local_address(SocketHandle socket);

}  // namespace headroom::server
