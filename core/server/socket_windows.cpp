#include "core/server/socket.h"

#include <limits>

#include <winsock2.h>
#include <ws2tcpip.h>

#include "core/server/socket_addresses-inl.h"

namespace headroom::server {
namespace {

SocketWait wait_for(SOCKET socket, SHORT events, std::chrono::milliseconds timeout) noexcept {
    WSAPOLLFD entry{.fd = socket, .events = events, .revents = 0};
    const int found = WSAPoll(&entry, 1, static_cast<INT>(timeout.count()));
    if (found == 0) return SocketWait::timeout;
    return found > 0 && (entry.revents & events) != 0 ? SocketWait::ready : SocketWait::failed;
}

int limited(std::size_t size) noexcept { return size > static_cast<std::size_t>(INT_MAX) ? INT_MAX : static_cast<int>(size); }

}  // namespace

SocketWait wait_readable(SocketHandle socket, std::chrono::milliseconds timeout) noexcept { return wait_for(socket, POLLRDNORM, timeout); }
SocketWait wait_writable(SocketHandle socket, std::chrono::milliseconds timeout) noexcept { return wait_for(socket, POLLWRNORM, timeout); }

std::ptrdiff_t receive(SocketHandle socket, char* data, std::size_t size) noexcept { return recv(socket, data, limited(size), 0); }

// Blocks for as long as the socket's own time limit says where the system has no room, though it was ready.
std::ptrdiff_t send(SocketHandle socket, const char* data, std::size_t size) noexcept { return ::send(socket, data, limited(size), 0); }

bool is_closed(SocketHandle socket) noexcept {
    const SocketWait state = wait_for(socket, POLLRDNORM, std::chrono::milliseconds(0));
    if (state == SocketWait::timeout) return false;
    char byte = 0;
    return state == SocketWait::failed || recv(socket, &byte, 1, MSG_PEEK) <= 0;
}

void send_at_once(SocketHandle socket) noexcept {
    const BOOL on = TRUE;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<const char*>(&on), sizeof on);
}

void set_backlog(SocketHandle socket, int connections) noexcept { (void)listen(socket, connections); }
void end_sending(SocketHandle socket) noexcept { (void)shutdown(socket, SD_SEND); }
void close_socket(SocketHandle socket) noexcept { (void)closesocket(socket); }

}  // namespace headroom::server
