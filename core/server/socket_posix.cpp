#include "core/server/socket.h"

#include <cerrno>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/server/socket_addresses-inl.h"

namespace headroom::server {
namespace {

SocketWait wait_for(int socket, short events, std::chrono::milliseconds timeout) noexcept {
    pollfd entry{.fd = socket, .events = events, .revents = 0};
    int found = 0;
    do {
        found = poll(&entry, 1, static_cast<int>(timeout.count()));
    } while (found < 0 && errno == EINTR);
    if (found == 0) return SocketWait::timeout;
    return found > 0 && (entry.revents & events) != 0 ? SocketWait::ready : SocketWait::failed;
}

// Whether a call would have had to wait, or was interrupted: the connection is fine.
bool is_passing(int code) noexcept {
#if EWOULDBLOCK != EAGAIN
    if (code == EWOULDBLOCK) return true;
#endif
    return code == EAGAIN || code == EINTR;
}

}  // namespace

SocketWait wait_readable(SocketHandle socket, std::chrono::milliseconds timeout) noexcept { return wait_for(socket, POLLIN, timeout); }
SocketWait wait_writable(SocketHandle socket, std::chrono::milliseconds timeout) noexcept { return wait_for(socket, POLLOUT, timeout); }

std::ptrdiff_t receive(SocketHandle socket, char* data, std::size_t size) noexcept {
    ssize_t count = 0;
    do {
        count = recv(socket, data, size, 0);
    } while (count < 0 && errno == EINTR);
    return count;
}

std::ptrdiff_t send(SocketHandle socket, const char* data, std::size_t size) noexcept {
    ssize_t count = 0;
    do {
        count = ::send(socket, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    return count < 0 && is_passing(errno) ? 0 : count;
}

bool is_closed(SocketHandle socket) noexcept {
    char byte = 0;
    const ssize_t count = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && !is_passing(errno));
}

void send_at_once(SocketHandle socket) noexcept {
    const int on = 1;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void set_backlog(SocketHandle socket, int connections) noexcept { (void)listen(socket, connections); }
void end_sending(SocketHandle socket) noexcept { (void)shutdown(socket, SHUT_WR); }
void close_socket(SocketHandle socket) noexcept { (void)close(socket); }

}  // namespace headroom::server
