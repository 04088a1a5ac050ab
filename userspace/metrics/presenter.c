#include "userspace/metrics/presenter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/metrics/exposition.h"
#include "userspace/metrics/http/page_store.h"
#include "userspace/metrics/http/server.h"
#include "userspace/metrics/text_file.h"

#define SECOND_NS UINT64_C(1000000000)
#define STALE_INTERVALS 3
#define STALE_LEAST_NS (30 * SECOND_NS)

struct rls_presenter {
	char *config_path;
	struct rls_monitor_config given, config;
	struct rls_exposition *exposition;
	struct rls_page_store *store;
	struct rls_server *server;
	uint64_t textfile_failures;
	bool textfile_fails; /* the last time; it has been said */
};

static uint64_t stale_ns(const struct rls_monitor_config *config)
{
	uint64_t ns = STALE_INTERVALS * rls_monitor_config_interval_ns(config);

	return ns > STALE_LEAST_NS ? ns : STALE_LEAST_NS;
}

/* File and command line together. */
static int read_config(const struct rls_presenter *presenter, struct rls_monitor_config *out)
{
	struct rls_monitor_config config = {0};
	int r = 0;

	if (presenter->config_path)
		r = rls_monitor_config_read(presenter->config_path, &config);
	if (!r)
		r = rls_monitor_config_overlay(&config, &presenter->given);
	if (r)
		rls_monitor_config_clear(&config);
	else
		*out = config;
	return r;
}

/* NULL to *out where nothing is to listen. */
static int start_server(const struct rls_presenter *presenter,
			const struct rls_monitor_config *config, struct rls_server **out)
{
	const struct rls_server_config server = {
		.listen = rls_monitor_config_text(config, RLS_SETTING_LISTEN),
		.tls_cert = rls_monitor_config_text(config, RLS_SETTING_TLS_CERT),
		.tls_key = rls_monitor_config_text(config, RLS_SETTING_TLS_KEY),
		.auth_file = rls_monitor_config_text(config, RLS_SETTING_AUTH_FILE),
	};

	*out = NULL;
	if (!server.listen)
		return 0;
	return rls_server_start(&server, presenter->store, presenter->server, out);
}

static int open_parts(struct rls_presenter *presenter)
{
	int r = read_config(presenter, &presenter->config);

	if (!r)
		r = rls_exposition_new(&presenter->exposition);
	if (!r)
		r = rls_page_store_new(stale_ns(&presenter->config), &presenter->store);
	if (!r)
		r = start_server(presenter, &presenter->config, &presenter->server);
	return r;
}

int rls_presenter_open(const char *config_path, const struct rls_monitor_config *given,
		       struct rls_presenter **out)
{
	struct rls_presenter *presenter = calloc(1, sizeof(*presenter));
	int r = presenter ? 0 : -ENOMEM;

	if (!r && config_path) {
		presenter->config_path = strdup(config_path);
		r = presenter->config_path ? 0 : -ENOMEM;
	}
	if (!r)
		r = rls_monitor_config_overlay(&presenter->given, given);
	if (!r)
		r = open_parts(presenter);
	if (r) {
		rls_presenter_free(presenter);
		return r;
	}
	*out = presenter;
	return 0;
}

static void remove_text_file(const struct rls_presenter *presenter)
{
	const char *directory = rls_monitor_config_text(&presenter->config, RLS_SETTING_TEXTFILE);

	if (directory)
		rls_text_file_remove(directory);
}

void rls_presenter_free(struct rls_presenter *presenter)
{
	if (!presenter)
		return;
	remove_text_file(presenter);
	rls_server_free(presenter->server);
	rls_page_store_free(presenter->store);
	rls_exposition_free(presenter->exposition);
	rls_monitor_config_clear(&presenter->config);
	rls_monitor_config_clear(&presenter->given);
	free(presenter->config_path);
	free(presenter);
}

uint64_t rls_presenter_interval_ns(const struct rls_presenter *presenter)
{
	return rls_monitor_config_interval_ns(&presenter->config);
}

const struct rls_monitor_config *rls_presenter_config(const struct rls_presenter *presenter)
{
	return &presenter->config;
}

/* When the snapshot was taken, by the wall clock. */
static uint64_t realtime_of(uint64_t monotonic_ns)
{
	struct timespec now;
	uint64_t ago_ns = rls_monotonic_ns() - monotonic_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec - ago_ns;
}

static void write_text_file(struct rls_presenter *presenter, const char *text, size_t bytes)
{
	const char *directory = rls_monitor_config_text(&presenter->config, RLS_SETTING_TEXTFILE);
	int r;

	if (!directory)
		return;
	r = rls_text_file_write(directory, text, bytes);
	if (r)
		presenter->textfile_failures++;
	if (r && !presenter->textfile_fails)
		rls_warning("cannot write %s/" RLS_TEXT_FILE_NAME ": %s; this is tried again every "
			    "%g s",
			    directory, strerror(-r),
			    (double)rls_presenter_interval_ns(presenter) / SECOND_NS);
	if (!r && presenter->textfile_fails)
		rls_info("%s/" RLS_TEXT_FILE_NAME " is written again", directory);
	presenter->textfile_fails = r != 0;
}

int rls_presenter_publish(struct rls_presenter *presenter, const struct rls_snapshot *snapshot)
{
	struct rls_exposition_outlets outlets = {
		.realtime_ns = realtime_of(snapshot->time_ns),
		.textfile_failures = presenter->textfile_failures,
	};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	int r;

	if (!out)
		return -ENOMEM;
	rls_page_store_counts(presenter->store, &outlets.pages_served, &outlets.requests_refused);
	r = rls_exposition_write(presenter->exposition, snapshot, &outlets, out);
	if (fclose(out) && !r)
		r = -ENOMEM;
	if (r) {
		free(text);
		return r == -EIO ? -ENOMEM : r; /* a stream in memory fails for nothing else */
	}
	write_text_file(presenter, text, bytes);
	return rls_page_store_put(presenter->store, text, bytes, rls_monotonic_ns());
}

static bool same_roles(const struct rls_monitor_config *a, const struct rls_monitor_config *b)
{
	if (a->role_count != b->role_count)
		return false;
	for (size_t i = 0; i < a->role_count; i++)
		if (a->roles[i].role != b->roles[i].role ||
		    strcmp(a->roles[i].pattern, b->roles[i].pattern))
			return false;
	return true;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

int rls_presenter_reload(struct rls_presenter *presenter)
{
	struct rls_monitor_config config;
	struct rls_server *server;
	int r = read_config(presenter, &config);

	if (r)
		return r;
	r = start_server(presenter, &config, &server);
	if (r) {
		rls_monitor_config_clear(&config);
		return r;
	}
	rls_server_free(presenter->server);
	presenter->server = server;
	rls_page_store_set_stale(presenter->store, stale_ns(&config));
	if (!same_roles(&config, &presenter->config))
		rls_warning("roles of libraries have changed: the new ones need a restart");
	if (!same_text(rls_monitor_config_text(&config, RLS_SETTING_TEXTFILE),
		       rls_monitor_config_text(&presenter->config, RLS_SETTING_TEXTFILE))) {
		remove_text_file(presenter);
		presenter->textfile_fails = false;
	}
	rls_monitor_config_clear(&presenter->config);
	presenter->config = config;
	return 0;
}

const char *rls_presenter_url(const struct rls_presenter *presenter,
			      char buffer[static RLS_PRESENTER_URL_BYTES])
{
	const char *listen = rls_monitor_config_text(&presenter->config, RLS_SETTING_LISTEN);
	bool tls = rls_monitor_config_text(&presenter->config, RLS_SETTING_TLS_CERT);

	buffer[0] = '\0';
	if (listen && presenter->server)
		snprintf(buffer, RLS_PRESENTER_URL_BYTES, "%s://%.*s:%u/metrics",
			 tls ? "https" : "http", (int)(strrchr(listen, ':') - listen), listen,
			 rls_server_port(presenter->server));
	return buffer;
}
