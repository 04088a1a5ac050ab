#include "userspace/metrics/http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/base/quiet_thread.h"
#include "userspace/metrics/http/listen_address.h"
#include "userspace/metrics/http/server_private.h"
#include "userspace/metrics/http/small_file.h"

#define SECOND_NS UINT64_C(1000000000)
#define NICE 10 /* a tenth of a busy CPU: scrapes still come through, floods do not hurt */
#define POLL_MS 1000 /* how often connections are looked at whose time may be up */

struct rls_server {
	struct rls_answers answers;
	struct MHD_Daemon *daemon;
	char *listen, *cert, *key;
	int listen_fd; /* the daemon's, ours to close */
	int stop_fd;
	pthread_t thread;
	bool running;
	struct rls_connection *connections[RLS_SERVER_CONNECTIONS_MAX];
};

/* MHD's own message why it does not start. Later ones are dropped: clients cause most of them. */
static void say_why(void *context, const char *format, va_list arguments)
{
	const struct rls_server *server = context;
	char text[512];

	if (server->running)
		return;
	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\n")] = '\0';
	rls_error("the web server says: %s", text);
}

static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection,
				      const char *url, const char *method, const char *version,
				      const char *upload, size_t *upload_bytes, void **request)
{
	struct rls_server *server = context;
	const union MHD_ConnectionInfo *info;

	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	/* None: there was no place for it, or no memory. */
	if (!info || !info->socket_context)
		return MHD_NO;
	return rls_answers_queue(&server->answers, connection, info->socket_context, url, method);
}

static void begin_connection(struct rls_server *server, struct MHD_Connection *connection,
			     void **context)
{
	const union MHD_ConnectionInfo *info;
	struct rls_connection *state;

	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (size_t i = 0; info && i < RLS_SERVER_CONNECTIONS_MAX; i++) {
		if (server->connections[i])
			continue;
		state = calloc(1, sizeof(*state));
		if (!state)
			return;
		state->fd = info->connect_fd;
		state->since_ns = rls_monotonic_ns();
		server->connections[i] = *context = state;
		return;
	}
}

/* Called before the connection's descriptor is closed. */
static void end_connection(struct rls_server *server, struct rls_connection *state)
{
	for (size_t i = 0; i < RLS_SERVER_CONNECTIONS_MAX; i++)
		if (server->connections[i] == state)
			server->connections[i] = NULL;
	rls_page_store_count(server->answers.store, state->served);
	free(state);
}

static void notify_connection(void *context, struct MHD_Connection *connection,
			      void **socket_context, enum MHD_ConnectionNotificationCode code)
{
	struct rls_server *server = context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		begin_connection(server, connection, socket_context);
	} else if (*socket_context) {
		end_connection(server, *socket_context);
		*socket_context = NULL;
	}
}

/* Gone before it asked for anything: MHD, which watches edges, does not always see that, and the
 * place it takes is one of its address's. */
static bool is_gone(const struct rls_connection *state)
{
	struct pollfd fd = {.fd = state->fd, .events = POLLRDHUP};

	return !state->answered && poll(&fd, 1, 0) > 0;
}

/* MHD's own time-out starts again with every byte; this one does not. */
static void cut_overdue(struct rls_server *server)
{
	uint64_t now_ns = rls_monotonic_ns();

	for (size_t i = 0; i < RLS_SERVER_CONNECTIONS_MAX; i++) {
		struct rls_connection *state = server->connections[i];
		uint64_t seconds;

		if (!state)
			continue;
		seconds = state->answered ? RLS_SERVER_CONNECTION_SECONDS
					  : RLS_SERVER_REQUEST_SECONDS;
		if (now_ns - state->since_ns < seconds * SECOND_NS && !is_gone(state))
			continue;
		state->served = false;
		shutdown(state->fd, SHUT_RDWR);
	}
}

static void *serve(void *context)
{
	struct rls_server *server = context;
	const union MHD_DaemonInfo *info;
	struct pollfd fds[2] = {{.fd = server->stop_fd, .events = POLLIN}};
	uint64_t checked_ns = rls_monotonic_ns();

	pthread_setname_np(pthread_self(), "metrics");
	setpriority(PRIO_PROCESS, 0, NICE); /* of this thread alone, on Linux */
	info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	fds[1] = (struct pollfd){.fd = info->epoll_fd, .events = POLLIN};
	while (!(fds[0].revents & POLLIN)) {
		MHD_UNSIGNED_LONG_LONG wait_ms;
		int timeout_ms = POLL_MS;

		if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES && wait_ms < POLL_MS)
			timeout_ms = (int)wait_ms;
		poll(fds, 2, timeout_ms);
		MHD_run(server->daemon);
		if (rls_monotonic_ns() - checked_ns < POLL_MS * (SECOND_NS / 1000))
			continue;
		checked_ns = rls_monotonic_ns();
		cut_overdue(server);
	}
	return NULL;
}

static int read_files(struct rls_server *server, const struct rls_server_config *config)
{
	int r = 0;

	if (!config->tls_cert != !config->tls_key)
		return rls_error_r(-EINVAL,
				   "TLS takes both a certificate and its key: %s is missing",
				   config->tls_cert ? "the key" : "the certificate");
	if (config->tls_cert)
		r = rls_small_file_read(config->tls_cert, &server->cert);
	if (!r && config->tls_key)
		r = rls_small_file_read(config->tls_key, &server->key);
	if (!r && config->auth_file)
		r = rls_accounts_read(config->auth_file, &server->answers.accounts);
	return r;
}

static bool listens_on(const struct rls_server *server, const struct rls_listen_address *address)
{
	struct sockaddr_storage bound = {0};
	socklen_t bytes = sizeof(bound);

	return server && !getsockname(server->listen_fd, (struct sockaddr *)&bound, &bytes) &&
	       bytes == address->bytes && !memcmp(&bound, &address->address, bytes);
}

static int open_socket(struct rls_server *server, const struct rls_server_config *config,
		       const struct rls_server *before)
{
	struct rls_listen_address address;

	if (rls_listen_address_parse(config->listen, &address))
		return rls_error_r(-EINVAL,
				   "'%s' is not an address to listen on: ADDRESS:PORT or "
				   "[ADDRESS]:PORT",
				   config->listen);
	server->listen = strdup(config->listen);
	if (!server->listen)
		return -ENOMEM;
	/* The same text counts too: of port 0 the port that was found. */
	if (!listens_on(before, &address) && (!before || strcmp(before->listen, config->listen)))
		return rls_listen_address_open(&address, config->listen, &server->listen_fd);
	server->listen_fd = fcntl(before->listen_fd, F_DUPFD_CLOEXEC, 3);
	return server->listen_fd < 0 ? rls_error_r(-errno, "cannot listen on %s: %s",
						   config->listen, strerror(errno))
				     : 0;
}

static int start_daemon(struct rls_server *server, const struct rls_server_config *config)
{
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, server->cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, server->key},
		{MHD_OPTION_END, 0, NULL},
	};
	unsigned int flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG;

	if (server->cert && !MHD_is_feature_supported(MHD_FEATURE_TLS))
		return rls_error_r(-ENOTSUP, "this libmicrohttpd has no TLS");
	if (!server->cert)
		tls[0].option = MHD_OPTION_END;
	else
		flags |= MHD_USE_TLS;
	server->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, answer_request, server, MHD_OPTION_EXTERNAL_LOGGER, say_why,
		server, MHD_OPTION_LISTEN_SOCKET, server->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)RLS_SERVER_CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		(unsigned int)RLS_SERVER_CONNECTIONS_PER_ADDRESS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)RLS_SERVER_REQUEST_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)RLS_SERVER_REQUEST_BYTES_MAX, MHD_OPTION_NOTIFY_CONNECTION,
		notify_connection, server, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (server->daemon)
		return 0;
	return rls_error_r(-EIO,
			   server->cert ? "cannot serve with %s and %s: are they a "
					  "certificate and its key, as PEM?"
					: "cannot serve on %s%s",
			   server->cert ? config->tls_cert : config->listen,
			   server->cert ? config->tls_key : "");
}

static int start_thread(struct rls_server *server)
{
	int r;

	server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->stop_fd < 0)
		return rls_error_r(-errno, "cannot serve: %s", strerror(errno));
	server->running = true;
	r = rls_quiet_thread_create(&server->thread, NULL, serve, server);
	if (r) {
		server->running = false;
		return rls_error_r(-r, "cannot serve: %s", strerror(r));
	}
	return 0;
}

int rls_server_start(const struct rls_server_config *config, struct rls_page_store *store,
		     const struct rls_server *before, struct rls_server **out)
{
	struct rls_server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;
	server->listen_fd = server->stop_fd = -1;
	server->answers.store = store;
	r = read_files(server, config);
	if (!r)
		r = rls_answers_make(&server->answers);
	if (!r)
		r = open_socket(server, config, before);
	if (!r)
		r = start_daemon(server, config);
	if (!r)
		r = start_thread(server);
	if (r) {
		rls_server_free(server);
		return r;
	}
	*out = server;
	return 0;
}

void rls_server_free(struct rls_server *server)
{
	if (!server)
		return;
	if (server->running) {
		eventfd_write(server->stop_fd, 1);
		pthread_join(server->thread, NULL);
	}
	if (server->daemon) {
		/* Else it would shut the socket down, which a successor may have too. */
		MHD_quiesce_daemon(server->daemon);
		MHD_stop_daemon(server->daemon);
	}
	rls_cleanup_close(&server->listen_fd);
	rls_cleanup_close(&server->stop_fd);
	rls_answers_clear(&server->answers);
	rls_accounts_free(server->answers.accounts);
	if (server->key)
		explicit_bzero(server->key, strlen(server->key));
	free(server->key);
	free(server->cert);
	free(server->listen);
	free(server);
}

unsigned int rls_server_port(const struct rls_server *server)
{
	return rls_listen_port(server->listen_fd);
}
