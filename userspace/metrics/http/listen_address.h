/* Where the server listens: ADDR:PORT, with ADDR an IPv4 address, an IPv6 address in brackets, or
 * localhost. Nothing is looked up. */
#ifndef RLS_LISTEN_ADDRESS_H
#define RLS_LISTEN_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

#define RLS_LISTEN_DEFAULT "127.0.0.1:9435"

struct rls_listen_address {
	struct sockaddr_storage address;
	socklen_t bytes;
};

/* 0 and *out, or -EINVAL (nothing is said). Port 0: any that is free. */
int rls_listen_address_parse(const char *text, struct rls_listen_address *out);

/* A socket that listens there, nonblocking and close-on-exec. 0 and *fd, or -errno, said on
 * stderr with `text`. */
int rls_listen_address_open(const struct rls_listen_address *address, const char *text, int *fd);

/* The port that a socket listens on, 0 when it is none. */
unsigned int rls_listen_port(int fd);

#endif
