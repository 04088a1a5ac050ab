#include "userspace/metrics/http/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"

/* A client that finds no place in the queue retries after 1, 3, 7, ... seconds, so a scrape during a
 * flood would be late. Those in the queue are soon accepted or rejected. */
#define BACKLOG 1024

static int parse_port(const char *text, in_port_t *out)
{
	char *end;
	unsigned long port;

	if (!*text || strspn(text, "0123456789") != strlen(text))
		return -EINVAL;
	errno = 0;
	port = strtoul(text, &end, 10);
	if (errno || port > 65535)
		return -EINVAL;
	*out = htons((in_port_t)port);
	return 0;
}

/* host: without brackets, which only IPv6 has. */
static int listen_address_fill(const char *host, bool brackets, in_port_t port,
			       struct rls_listen_address *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->address;

	*out = (struct rls_listen_address){0};
	if (brackets) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		out->bytes = sizeof(*v6);
		return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = port;
	out->bytes = sizeof(*v4);
	if (!strcmp(host, "localhost"))
		host = "127.0.0.1";
	return inet_pton(AF_INET, host, &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

int rls_listen_address_parse(const char *text, struct rls_listen_address *out)
{
	const char *colon = strrchr(text, ':'), *begin = text, *end = colon;
	struct rls_listen_address address;
	char host[INET6_ADDRSTRLEN];
	bool brackets = *text == '[';
	in_port_t port;

	if (!colon || parse_port(colon + 1, &port))
		return -EINVAL;
	if (brackets) {
		if (end - begin < 2 || end[-1] != ']')
			return -EINVAL;
		begin++;
		end--;
	}
	if ((size_t)(end - begin) >= sizeof(host))
		return -EINVAL;
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	if (listen_address_fill(host, brackets, port, &address))
		return -EINVAL;
	*out = address;
	return 0;
}

int rls_listen_address_open(const struct rls_listen_address *address, const char *text, int *fd)
{
	_cleanup_close_ int opened = -1;
	const int on = 1;
	int family = address->address.ss_family;

	opened = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* [::] means IPv6: IPv4 has its own address to listen on. */
	if (opened < 0 || setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    (family == AF_INET6 &&
	     setsockopt(opened, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) ||
	    bind(opened, (const struct sockaddr *)&address->address, address->bytes) ||
	    listen(opened, BACKLOG))
		return rls_error_r(-errno, "cannot listen on %s: %s", text, strerror(errno));
	*fd = rls_take_fd(opened);
	return 0;
}

unsigned int rls_listen_port(int fd)
{
	struct sockaddr_storage address;
	socklen_t bytes = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &bytes))
		return 0;
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address)->sin_port);
	return address.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&address)->sin6_port)
					     : 0;
}
